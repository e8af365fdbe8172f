package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// pinTools has a server define its tools, as JSON.
func pinTools(t *testing.T, store pins.Store, s config.Server, tools ...string) {
	t.Helper()
	var all []pins.Definition
	for _, tool := range tools {
		d, err := pins.Define(json.RawMessage(tool))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if _, err := store.Record(pins.Key(s), s.Name, nil, all); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorNamesServersWithOtherTools(t *testing.T) {
	store := pins.Store{Dir: t.TempDir()}
	server := func(name string) config.Server { return config.Server{Name: name, Command: "x"} }
	pinTools(t, store, server("same"), `{"name":"a"}`)
	pinTools(t, store, server("changed"), `{"name":"a"}`, `{"name":"b"}`)
	pinTools(t, store, server("changed"), `{"name":"a","title":"A"}`, `{"name":"c"}`)
	pinTools(t, store, server("hides"), `{"name":"a","description":"\u200b"}`)
	if err := os.WriteFile(store.File(pins.Key(server("damaged"))), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range checkServerPins([]config.Server{server("same"), server("changed"), server("hides"), server("damaged"), server("unknown")}, store) {
		got = append(got, fmt.Sprintf("%s %s\n%s", c.Code, c.Text, c.Cure))
	}
	for i, want := range [][]string{
		{"RC-SERVER-PINS", `server "changed" has other tools than those pinned on `, ", 1 changed, 1 added, 1 removed\n", "\ntoolcell servers pins changed"},
		{"RC-SERVER-HIDDEN", `server "hides" defines 1 tool with hidden characters`, "\ntoolcell servers pins hides"},
		{"RC-SERVER-PINS", `server "damaged" are not noticed: reading ` + store.Dir, "\nrm " + store.Dir},
	} {
		for _, part := range want {
			if len(got) != 3 || !strings.Contains(got[i], part) {
				t.Errorf("want %q in %q", part, got)
			}
		}
	}
}

// TestPinsOfThousandsOfToolsAreBounded where they are shown.
//
//test:alone
func TestPinsOfThousandsOfToolsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of tools")
	}
	store := pins.Store{Dir: t.TempDir()}
	s := config.Server{Name: "s", Command: "x"}
	define := func(description string) (tools []string) {
		for i := range 5000 {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, description))
		}
		return tools
	}
	pinTools(t, store, s, define("A")...)
	pinTools(t, store, s, define(strings.Repeat("B\u202e\n", 1000))...)
	pinned, err := store.Read(pins.Key(s))
	if err != nil {
		t.Fatal(err)
	}
	if got := pinRemark("s", pinned); len(got) > 200 || !strings.HasPrefix(got, "tools: 5000 changed since ") || !strings.Contains(got, "; 5000 tools with hidden characters: toolcell servers pins s") {
		t.Errorf("remark: %s", got)
	}
	row := newPinRow("s", pinned)
	for _, change := range row.Changes {
		for _, d := range change.Differences {
			if len(d.Diff) > 64<<10 || strings.ContainsRune(d.Diff, '\u202e') {
				t.Fatalf("%s: %d bytes", change.Tool, len(d.Diff))
			}
		}
	}
}

// TestAcceptedPinsAreOnRecord, of no run, with what was pinned before; a hint that was accepted with an
// answer is of its run. Without a record nothing is accepted if one is required.
func TestAcceptedPinsAreOnRecord(t *testing.T) {
	r := newRecorded(t, record.Options{})
	file := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"bank":{"command":"/bin/false","cwd":"/"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOOLCELL_SERVERS_CONFIG", file)
	store := pins.Store{Dir: filepath.Join(r.state, "state", "pins")}
	if err := os.MkdirAll(store.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := config.Server{Name: "bank", Command: "/bin/false", Dir: "/"}
	pinTools(t, store, s, `{"name":"pay"}`, `{"name":"gone"}`)
	pinTools(t, store, s, `{"name":"pay","title":"A\u001b[2J"}`, `{"name":"new"}`)
	records := filepath.Join(r.state, "state", "records")
	if err := os.WriteFile(records, nil, 0o600); err != nil { // where the folder would be
		t.Fatal(err)
	}
	if _, errs, code := r.types(t, "servers", "pins", "accept", "bank", "--record-required", "1"); code != 1 || !strings.Contains(errs, "nothing is accepted without a record") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if out, errs, code := r.types(t, "servers", "pins", "accept", "bank", "new"); code != 0 || !strings.Contains(errs, "this is not on record: ") || !strings.Contains(out, "new of bank: pinned, a new tool") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if err := os.Remove(records); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to accept
		if out, errs, code := r.types(t, "servers", "pins", "accept", "bank"); code != 0 || errs != "" {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
	}
	r.write(t, "aaaabbbbcccc", record.RunStart{}, record.Pin{Server: "bank", Tool: "look", Change: "accepted", By: record.ByQuestion}, record.RunEnd{Status: "success"})
	r.close(t)
	out, _, code := r.types(t, "runs", "export")
	var got []string
	for line := range strings.Lines(out) {
		var e struct {
			Kind, Run, Server, Tool, Change, By string
			Before                              string `json:"beforeSHA256"`
			Now                                 string `json:"nowSHA256"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == "pin" {
			got = append(got, fmt.Sprint(e.Run, " ", e.Server, ".", e.Tool, " ", e.Change, " ", e.By, " ", len(e.Before), " ", len(e.Now)))
		}
	}
	want := []string{
		" bank.gone accepted toolcell servers pins accept 64 0", " bank.pay accepted toolcell servers pins accept 64 64",
		"aaaabbbbcccc bank.look accepted question 0 0",
	}
	if !slices.Equal(got, want) || code != 0 {
		t.Errorf("exit %d, on record is\n%q, want\n%q", code, got, want)
	}
	if out, _, _ := r.types(t, "runs", "show"); !strings.Contains(out, "pin       bank.look accepted in a question: it counts as only reading\n") || strings.Contains(out, "bank.pay") {
		t.Errorf("got\n%s", out)
	}
	if out, errs, code := r.types(t, "runs", "verify"); code != 0 || !strings.HasPrefix(out, "whole: 2 files with ") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if got := (&follower{}).tell(history.Entry{Body: &record.Pin{Server: "bank", Tool: "pay", Change: "accepted", By: "toolcell servers pins accept"}}); got != "pin     bank.pay accepted with toolcell servers pins accept" {
		t.Errorf("followed is %q", got)
	}
	if out, _, code := r.types(t, "runs", "export", "--format", "csv"); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("exit %d, %s", code, out)
	}
}
