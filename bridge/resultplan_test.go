package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

func TestPlanOfAClientInASession(t *testing.T) {
	written := 0
	up := fakeUpstreams{"notes": {
		"read":  func(context.Context, json.RawMessage) (string, error) { return "text", nil },
		"write": func(context.Context, json.RawMessage) (string, error) { written++; return "done", nil },
		"fail":  func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no") },
	}}
	c := connect(t, newServer(t, up, func(o *Options) { o.Sessions = 2 }))
	args := map[string]any{
		"code":    `from mcp import runtime; import asyncio; x = await runtime.call_tool("notes", "read"); print(x, await asyncio.gather(*(runtime.call_tool("notes", "write", {"n": n}) for n in range(3))))`,
		"servers": []string{"notes"}, "session": "s", "plan": true,
	}
	text, _, isError := callTool(t, c, args)
	want := "text [<result 1>, <result 2>, <result 3>]\nplan, none of it was done:\n1. notes.write {\"n\":0}\n2. notes.write {\"n\":1}\n3. notes.write {\"n\":2}"
	if isError || !strings.HasPrefix(text, want) || written != 0 {
		t.Errorf("%d were written\n%s", written, text)
	}
	text, _, _ = callTool(t, c, map[string]any{"code": `print(x, await runtime.call_tool("notes", "write"))`, "servers": []string{"notes"}, "session": "s", "plan": false})
	if !strings.HasPrefix(text, "text done") || strings.Contains(text, "plan") || written != 1 {
		t.Errorf("the next run of the session wrote %d times: %s", written, text)
	}
	for _, wrong := range []any{"yes", 1} {
		text, _, isError := callTool(t, c, map[string]any{"code": "1", "plan": wrong})
		if !isError || !strings.Contains(text, "plan must be true or false") {
			t.Errorf("plan=%v: %s", wrong, text)
		}
	}
}

func TestPlanIsPartOfWhatIsApproved(t *testing.T) {
	if digestOf(Request{Code: "1"}) == digestOf(Request{Code: "1", Plan: true}) {
		t.Error("a dry run can be continued as a real one")
	}
}

func TestPlanLinesSayWhatIsLeftOut(t *testing.T) {
	r := &Result{}
	if r.PlanLines() != nil {
		t.Error("a real run has a plan")
	}
	r.addPlan(gate.Plan{})
	if got := strings.Join(r.PlanLines(), "\n"); got != "plan: the code made no call that may change something" {
		t.Error(got)
	}
	r.addPlan(gate.Plan{Calls: []gate.PlannedCall{{Server: "a", Tool: "b\nc", Arguments: json.RawMessage(`{}`)}}, LeftOut: 2})
	if got := r.PlanLines(); len(got) != 3 || strings.Contains(got[1], "\n") || got[2] != "and 2 more calls" {
		t.Errorf("%q", got)
	}
}

func TestPlanOfFailedCodeHasTheCallsUntilThen(t *testing.T) {
	up := fakeUpstreams{"notes": {"write": func(context.Context, json.RawMessage) (string, error) { return "done", nil }}}
	r := newServer(t, up, nil).Run(t.Context(), Request{
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
		return s.Run(t.Context(), Request{Code: "from mcp import runtime\n" + code, Servers: []string{"notes"}, Session: session, Plan: plan, Timeout: 2 * time.Minute})
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
		r := s.Run(t.Context(), Request{Code: `from mcp import runtime; await runtime.call_tool("tasks", "list_tasks")`, Servers: []string{"tasks"}, Timeout: 2 * time.Minute})
		return strings.Join(r.Notes, "\n")
	}
	if got, want := run(), `policy: [servers.tasks] deny = "list_task" matches no tool; did you mean "list_tasks"?`; !strings.Contains(got, want) {
		t.Errorf("notes %q", got)
	}
	if got := run(); strings.Contains(got, "policy:") {
		t.Errorf("it is said again: %q", got)
	}
}
