package run

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/policy"
)

func TestPlanOfFailedCodeHasTheCallsUntilThen(t *testing.T) {
	up := fakeUpstreams{"notes": {"write": func(context.Context, json.RawMessage) (string, error) { return "done", nil }}}
	r := newServer(t, up, nil).Do(t.Context(), Request{
		Code: `from mcp import runtime; bool(await runtime.call_tool("notes", "write"))`, Servers: []string{"notes"}, Plan: true, Timeout: 2 * time.Minute,
	})
	if r.Status != StatusError || len(r.Plan) != 1 || len(r.Calls) != 0 || !strings.HasPrefix(r.Hint, "in a dry run") {
		t.Errorf("%+v", r)
	}
}

// TestWhatAPlanLeftInASessionIsNotSent by a real run of it, nor read with by another plan.
func TestWhatAPlanLeftInASessionIsNotSent(t *testing.T) {
	sent := 0
	answer := func(context.Context, json.RawMessage) (string, error) { sent++; return "done", nil }
	up := fakeUpstreams{"notes": {"write": answer, "read": answer}}
	s := newServer(t, up, func(o *Options) { o.Sessions = 4 })
	run := func(session string, plan bool, code string) *Result {
		return s.Do(t.Context(), Request{Code: "from mcp import runtime\n" + code, Servers: []string{"notes"}, Session: session, Plan: plan, Timeout: 2 * time.Minute})
	}
	made := run("a", true, `
uri = await runtime.call_tool("notes", "write", {"text": "x"})
text = await runtime.read_resource("notes", "x:/<result 1>")
print(text)
`)
	if made.Status != StatusSuccess || len(made.Plan) != 2 || made.Plan[1].Tool != "resources/read" || !strings.Contains(strings.Join(made.Stdout, "\n"), "<result 2>") || sent > 0 {
		t.Fatalf("%+v", made)
	}
	for name, code := range map[string]string{
		"a call":        `await runtime.call_tool("notes", "write", {"a": [{"b": f"see {text}!"}]})`,
		"a read":        `await runtime.call_tool("notes", "read", {str(text): 1})`,
		"a part":        `await runtime.call_tool("notes", "read", {"x": text[0].name})`,
		"an error":      "n = 1\ntry: len(text)\nexcept TypeError: n = 2\n" + `await runtime.call_tool("notes", "read", {"n": n})`,
		"a resource":    `await runtime.read_resource("notes", f"x:/{text}")`,
		"a prompt":      `await runtime.get_prompt("notes", "p", {"n": f"{text}".upper()})`,
		"quoted":        "import urllib.parse\n" + `runtime.read_resource_sync("notes", "x:/" + urllib.parse.quote(str(text)))`,
		"a prompt's id": `await runtime.get_prompt("notes", f"{text}")`,
	} {
		if r := run("a", false, code); r.Status != StatusError || !strings.Contains(r.Error, "stands for the result of a call that was only planned, in an earlier run of this session") || sent > 0 {
			t.Errorf("%s: %s %s, sent %d", name, r.Status, r.Error, sent)
		}
	}
	if r := run("a", true, `await runtime.call_tool("notes", "read", {"x": text})`); r.Status != StatusSuccess || len(r.Plan) != 1 || sent > 0 {
		t.Errorf("another plan: %+v, sent %d", r, sent)
	}
	if r := run("a", false, `await runtime.call_tool("notes", "write", {"x": "real"})`); r.Status != StatusSuccess || sent != 1 {
		t.Errorf("real variables: %s %s, sent %d", r.Status, r.Error, sent)
	}
	if r := run("b", false, `await runtime.call_tool("notes", "write", {"x": "<result 1>"})`); r.Status != StatusSuccess || sent != 2 {
		t.Errorf("another session: %s %s, sent %d", r.Status, r.Error, sent)
	}
}

// TestANameInThePolicyThatMatchesNoToolIsSaid in the first result that it concerns.
func TestANameInThePolicyThatMatchesNoToolIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.tasks]\ndeny = ['list_task']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := fakeUpstreams{"tasks": {"list_tasks": func(context.Context, json.RawMessage) (string, error) { return "done", nil }}}
	s := newServer(t, up, func(o *Options) { o.Policy = policy.Load(file, true, nil) })
	run := func() string {
		r := s.Do(t.Context(), Request{Code: `from mcp import runtime; await runtime.call_tool("tasks", "list_tasks")`, Servers: []string{"tasks"}, Timeout: 2 * time.Minute})
		return strings.Join(r.Notes, "\n")
	}
	if got, want := run(), `policy: [servers.tasks] deny = "list_task" matches no tool; did you mean "list_tasks"?`; !strings.Contains(got, want) {
		t.Errorf("notes %q", got)
	}
	if got := run(); strings.Contains(got, "policy:") {
		t.Errorf("it is said again: %q", got)
	}
}
