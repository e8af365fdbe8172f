package hostapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// withStore returns an API whose run has read nothing, and the folder of its saved tools,
// which has one named first.
func withStore(t *testing.T) (api testAPI, folder string) {
	t.Helper()
	dir := t.TempDir()
	store := savedtools.Open(dir, "")
	first := savedtools.Tool{
		Name: "first", Signature: "(a: int) -> int", Doc: "Adds one.\n\nSlowly.", Schema: json.RawMessage(`{"type":"object"}`), Source: "def first(a): return a + 1\n",
	}
	if err := store.Save(first); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "first.py"))
	if len(files) != 1 {
		t.Fatalf("the tools are in %q", files)
	}
	return newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Marks: &consent.Taint{}}), filepath.Dir(files[0])
}

// wantAnswer asks, and compares all of the answer.
func wantAnswer(t *testing.T, api testAPI, method, params, want string) {
	t.Helper()
	answer, err := ask(t, api, method, json.RawMessage(params))
	if err != nil || string(answer) != want {
		t.Errorf("%s %s gave %s, %v, want %s", method, params, answer, err, want)
	}
}

func TestSavedToolsAreDocumentedAsTheDetailSays(t *testing.T) {
	api, _ := withStore(t)
	const named = `[{"server":"user_tools","serverAlias":"user_tools","tool":"first","toolAlias":"first",`
	const whole = `"description":"Saved tool, no server needed: from user_tools import first\nAdds one.\n\nSlowly.",`
	for detail, want := range map[string]string{
		"":       named + `"description":"Saved tool (from user_tools import first). Adds one.","signature":"first(a: int) -\u003e int"}]`,
		"full":   named + whole + `"signature":"first(a: int) -\u003e int","inputSchema":{"type":"object"}}]`,
		"schema": named + whole + `"inputSchema":{"type":"object"}}]`,
	} {
		wantAnswer(t, api, "query_tool_docs", `{"server":"user_tools","tool":"first","detail":"`+detail+`"}`, want)
	}
}

func TestListOfSavedToolsHasNoSource(t *testing.T) {
	api, _ := withStore(t)
	if answer, err := ask(t, api, "saved_tools", nil); err != nil || !strings.Contains(string(answer), `"name":"first"`) || strings.Contains(string(answer), "source") {
		t.Errorf("got %s, %v", answer, err)
	}
	wantAnswer(t, api, "remove_tool", `{"name":"first"}`, `null`)
	wantAnswer(t, api, "saved_tools", ``, `[]`)
}

// TestSavedToolIsPrivateAsItsRunIs, whatever the code says of it.
func TestSavedToolIsPrivateAsItsRunIs(t *testing.T) {
	store := privateStore(t)
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store, Marks: &consent.Taint{}})
	for _, read := range [][]string{nil, {"bank.accounts"}} {
		if read != nil {
			if _, err := ask(t, api, "saved_source", json.RawMessage(`{"name":"balance"}`)); err != nil {
				t.Fatal(err)
			}
		}
		for _, said := range []string{``, `,"private":[]`, `,"private":["forged"]`} {
			wantAnswer(t, api, "save_tool", `{"name":"new","source":"1"`+said+`}`, `null`)
			if tool, err := store.Show("new"); err != nil || !slices.Equal(tool.Private, read) {
				t.Errorf("after reading %q, with %s: private is %q, %v", read, said, tool.Private, err)
			}
		}
	}
}

func TestReservedNameIsAValueError(t *testing.T) {
	api, _ := withStore(t)
	_, err := ask(t, api, "save_tool", json.RawMessage(`{"name":"json","source":"1"}`))
	if e := new(runner.CallError); !errors.As(err, &e) || e.Kind != "ValueError" || !strings.Contains(e.Message, "json is the name of a module") {
		t.Errorf("got %v", err)
	}
}

// TestExportOfWhatIsNoNameSaysWhich item it is.
func TestExportOfWhatIsNoNameSaysWhich(t *testing.T) {
	api, _ := withStore(t)
	if _, err := ask(t, api, "export_tools", json.RawMessage(`{"tools":["first",1]}`)); err == nil || err.Error() != "item 1 is not a text" {
		t.Errorf("got %v", err)
	}
}

// TestReplacedToolWithoutATime, as the user has put it there, is not said to be of the year 1.
func TestReplacedToolWithoutATime(t *testing.T) {
	api, folder := withStore(t)
	if err := os.WriteFile(filepath.Join(folder, "first.py"), []byte("def first(): pass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, api, "save_tool", `{"name":"first","source":"1"}`, `null`)
	for range 2 { // they stay, for who asks again
		if notes := api.Notes(); !slices.Equal(notes, []string{`saved tool "first" replaced another`}) {
			t.Errorf("notes %q", notes)
		}
	}
}

// TestSavedToolThatCannotBeReadIsLeftOut, and the log says why.
func TestSavedToolThatCannotBeReadIsLeftOut(t *testing.T) {
	quiet, folder := withStore(t)
	if err := os.WriteFile(filepath.Join(folder, "huge.py"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	rules, up := policy.None().NewEnforcer(), quiet.o.Upstreams
	g := gate.New(gate.Options{Upstreams: up, Policy: rules})
	logging := testAPI{New(Options{Upstreams: up, Gate: g, Policy: rules, Saved: quiet.o.Saved, Log: slog.New(slog.NewTextHandler(&log, nil))}), g}
	for _, api := range []testAPI{quiet, logging} {
		if answer, err := ask(t, api, "saved_tools", nil); err != nil || !strings.Contains(string(answer), `"first"`) || strings.Contains(string(answer), "huge") {
			t.Errorf("got %s, %v", answer, err)
		}
	}
	if !strings.Contains(log.String(), `reading saved tool \"huge\"`) {
		t.Errorf("the log has %s", log.String())
	}
}
