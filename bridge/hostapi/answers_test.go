package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestAnswersOfTheHost asks for what has no effect, one thing after the other.
func TestAnswersOfTheHost(t *testing.T) {
	up := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{})
	rules := policy.None().NewEnforcer()
	g := gate.New(gate.Options{Upstreams: up, Policy: rules})
	lines := []string{"one\n"}
	folder, err := os.Open(t.TempDir()) // which cannot be read as a file
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	api := testAPI{New(Options{
		Upstreams: up, Gate: g, Policy: rules, Saved: savedtools.Open(t.TempDir(), ""),
		Printed: map[string]io.ReaderAt{"stdout": strings.NewReader("all of it"), "folder": folder},
		Input: func(context.Context) (string, error) {
			if len(lines) == 0 {
				return "", io.EOF
			}
			defer func() { lines = nil }()
			return lines[0], nil
		},
	}), g}
	for _, c := range []struct{ method, params, want string }{
		{"list_servers", `{}`, `["up"]`},
		{"query_tool_docs", `{"server":"up","tool":"f","detail":"schema"}`, `"inputSchema"`},
		{"query_tool_docs", `{"server":"up","tool":"f"}`, `"signature"`},
		{"read_input", `{}`, `"one\n"`},
		{"read_input", `{}`, `null`},
		{"read_printed", `{"name":"stdout","offset":4}`, `b2YgaXQ=`}, // base64 of "of it"
		{"read_printed", `{"name":"stdout","offset":100}`, `""`},
		{"read_printed", `{"name":"stderr"}`, `error: the last run has left no "stderr"`},
		{"read_printed", `{"name":"folder","offset":-1}`, `error: the offset -1 is negative`},
		{"read_printed", `{"name":"folder"}`, `error: is a directory`},
		{"save_tool", `{"name":"twice","source":"def twice(x): return 2 * x\n"}`, `null`},
		{"save_tool", `{"name":"twice","source":"def twice(x): return x + x\n"}`, `null`},
		{"save_tool", `{"name":"a","source":"1","imports":5}`, `error: saving a tool: its parameters have the wrong types`},
		{"saved_source", `{"name":"twice"}`, `x + x`},
		{"saved_failed", `{"name":"twice","source":"ImportError: no y"}`, `null`},
		{"saved_failed", `{"name":"../x","source":"no name"}`, `null`},
		{"remove_tool", `{"name":"twice"}`, `null`},
		{"no_such_method", `{}`, `error: the host knows no method "no_such_method"`},
	} {
		answer, err := ask(t, api, c.method, json.RawMessage(c.params))
		got := string(answer)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s gave %s, want %s", c.method, c.params, got, c.want)
		}
	}
	notes := strings.Join(api.Notes(), "\n")
	if !strings.Contains(notes, `saved tool "twice" replaced another, saved at `) || !strings.Contains(notes, `saved tool "twice" was skipped: ImportError: no y`) || strings.Contains(notes, "no name") {
		t.Errorf("notes %q", notes)
	}
	without := newAPI(testOptions{Policy: rules, Upstreams: up})
	if answer, err := ask(t, without, "read_input", nil); err != nil || string(answer) != "null" {
		t.Errorf("without input: %s, %v", answer, err)
	}
	if _, err := ask(t, without, "save_tool", json.RawMessage(`{"name":"x","source":"`+strings.Repeat("x", maxSaving)+`"}`)); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a large tool: %v", err)
	}
}
