package bridge

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/run"
)

func TestCallLinesInEveryMode(t *testing.T) {
	r := run.Result{
		Status: run.StatusTimeout, Error: "too long", ReadOnlyCalls: 1,
		Calls: []gate.CallRecord{{Server: "github", Tool: "create_issue", Arguments: `{"title": "a"}`, Outcome: gate.CallDone}, {Server: "github", Tool: "close", Arguments: `{}`, Outcome: gate.CallUnknown}},
	}
	r.Summarize()
	long := run.Result{Status: run.StatusTimeout, CallsLeftOut: 170, ReadOnlyCalls: 200}
	if text := strings.Join(CallLines(&long), "\n"); text != "and 170 more such calls" {
		t.Errorf("got %s", text)
	}
	for mode, want := range map[OutputMode]string{
		OutputCompact: "status: timeout\nerror: too long\n" +
			"calls that have taken effect; a retry should not repeat what they changed:\n  github.create_issue {\"title\": \"a\"}\n" +
			"calls without an answer, which may have taken effect:\n  github.close {}\nand 1 call of read-only tools, which changed nothing",
		OutputTOON: "calls[2]{server,tool,arguments,outcome}:\n  github,create_issue,\"{\\\"title\\\": \\\"a\\\"}\",done\n  github,close,\"{}\",unknown\nreadOnlyCalls: 1",
		OutputJSON: `"outcome": "unknown"`,
	} {
		if got := Text(&r, mode); !strings.Contains(got, want) {
			t.Errorf("%s: got %s\nwant %s", mode, got, want)
		}
	}
}
