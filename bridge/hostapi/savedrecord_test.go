package hostapi

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// recording returns an API whose run is on record, and what the record has of it in the end.
func recording(t *testing.T, store savedtools.Store) (api testAPI, entries func() []string) {
	t.Helper()
	dir := t.TempDir()
	journal := record.Open(record.Options{Dir: dir})
	api = newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Marks: &consent.Taint{}, Record: journal.Begin("aaaabbbbcccc", "")})
	return api, func() (all []string) {
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
		found, err := history.Open(dir).Show("aaaabbbbcccc")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			switch e := e.Body.(type) {
			case *record.File:
				all = append(all, fmt.Sprintf("%s %s %d %.8s", e.Use, e.Name, e.Size, e.SHA256))
			case *record.Limit:
				all = append(all, fmt.Sprintf("limit %s %d", e.Name, e.Max))
			}
		}
		return all
	}
}

// TestSavedToolsAreOnRecord: each source once, and again when it is another one. What failed is not
// there, nor is the digest of what may hold private data.
func TestSavedToolsAreOnRecord(t *testing.T) {
	api, entries := recording(t, privateStore(t))
	for _, c := range [][2]string{
		{"save_tool", `{"name":"new","source":"1"}`},
		{"save_tool", `{"name":"new","source":"1"}`},
		{"save_tool", `{"name":"new","source":"22"}`},
		{"save_tool", `{"name":"../new","source":"1"}`},
		{"save_tool", `{"name":"json","source":"1"}`},
		{"saved_tools", `{}`},
		{"query_tool_docs", `{"server":"user_tools","tool":"new","detail":"full"}`},
		{"saved_source", `{"name":"new"}`},
		{"saved_source", `{"name":"new"}`},
		{"saved_source", `{"name":"none"}`},
		{"remove_tool", `{"name":"new"}`},
		{"remove_tool", `{"name":"new"}`},
		{"save_tool", `{"name":"new","source":"22"}`},
		{"export_tools", `{"tools":[]}`},
		{"saved_source", `{"name":"balance"}`},
	} {
		_, _ = ask(t, api, c[0], json.RawMessage(c[1])) // some fail
	}
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:8] }
	want := []string{
		"saved user_tools.new 1 " + sum("1"), "saved user_tools.new 2 " + sum("22"), "given user_tools.new 2 " + sum("22"),
		"removed user_tools.new 0 ", "saved user_tools.new 2 ", // the docs of all tools were read, a private one among them
		"given user_tools.balance 27 ", "given user_tools.clean 18 " + sum("def clean(): pass\n"), "given user_tools.new 2 ",
	}
	if got := strings.Join(entries(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("on record is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestSavingWithoutEndIsBoundedOnRecord, which says that it is.
func TestSavingWithoutEndIsBoundedOnRecord(t *testing.T) {
	api, entries := recording(t, savedtools.Open(t.TempDir(), ""))
	for i := range maxSavedEntries + 50 {
		wantAnswer(t, api, "save_tool", fmt.Sprintf(`{"name":"a","source":"%d"}`, i), "null")
	}
	wantAnswer(t, api, "remove_tool", `{"name":"a"}`, "null")
	got := entries()
	if len(got) != maxSavedEntries+1 || got[maxSavedEntries] != fmt.Sprintf("limit saved tools on record %d", maxSavedEntries) {
		t.Errorf("%d entries, the last is %q", len(got), got[len(got)-1])
	}
}
