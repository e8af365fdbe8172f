package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/run"
)

func TestPlanOfAClientInASession(t *testing.T) {
	written := 0
	up := fakeUpstreams{"notes": {
		"read":  func(context.Context, json.RawMessage) (string, error) { return "text", nil },
		"write": func(context.Context, json.RawMessage) (string, error) { written++; return "done", nil },
		"fail":  func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no") },
	}}
	c := connect(t, newServer(t, up, func(o *run.Options) { o.Sessions = 2 }))
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
	if digestOf(run.Request{Code: "1"}) == digestOf(run.Request{Code: "1", Plan: true}) {
		t.Error("a dry run can be continued as a real one")
	}
}

func TestPlanLinesSayWhatIsLeftOut(t *testing.T) {
	r := &run.Result{}
	if PlanLines(r) != nil {
		t.Error("a real run has a plan")
	}
	r.Plan = []gate.PlannedCall{}
	if got := strings.Join(PlanLines(r), "\n"); got != "plan: the code made no call that may change something" {
		t.Error(got)
	}
	r.Plan, r.PlanLeftOut = []gate.PlannedCall{{Server: "a", Tool: "b\nc", Arguments: json.RawMessage(`{}`)}}, 2
	if got := PlanLines(r); len(got) != 3 || strings.Contains(got[1], "\n") || got[2] != "and 2 more calls" {
		t.Errorf("%q", got)
	}
}
