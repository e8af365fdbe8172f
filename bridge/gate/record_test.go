package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
)

func TestListedCallsAreBounded(t *testing.T) {
	c := callRecorder{ended: map[Outcome]int{}}
	call := func(tool string, n int) {
		e := Effect{Bytes: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Facts: mcpproxy.Facts{Method: mcpproxy.CallTool, Name: tool}}
		e.Facts.Tool.ReadsOnly = tool == "read"
		rec := c.begin(e, nil)
		switch tool {
		case "crash":
			c.end(rec, outcomeOf(mcpproxy.CallResult{}, mcpproxy.ErrCallLost, true))
		default:
			c.end(rec, outcomeOf(mcpproxy.CallResult{IsError: tool == "fail"}, nil, tool != "kept"))
		}
	}
	for i := range 200 {
		call("write", i)
		call("read", i)
		call("fail", i)
		call("kept", i)
		if i%10 == 0 {
			call("crash", i)
		}
	}
	if len(c.calls) > 2*maxListedCalls {
		t.Errorf("%d calls are kept", len(c.calls))
	}
	log := c.log()
	if len(log.Calls) != maxListedCalls || log.LeftOut != 220-maxListedCalls || log.ReadOnly != 200 {
		t.Errorf("%d calls listed, %d left out, %d read-only", len(log.Calls), log.LeftOut, log.ReadOnly)
	}
	if n := len(slices.DeleteFunc(slices.Clone(log.Calls), func(c CallRecord) bool { return c.Outcome != CallUnknown })); n != 20 {
		t.Errorf("%d calls with an unknown outcome are listed, want all 20", n)
	}
}

func TestArgumentsAreShortened(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct{ raw, want string }{
		"none":            {"", "{}"},
		"empty":           {"{}", "{}"},
		"whole":           {`{"b":1,"a":[1, 2],"c":null}`, `{"b": 1, "a": [1, 2], "c": null}`},
		"lines":           {"{\n \"a\":\n{\"b\":\t1}}", `{"a": {"b": 1}}`},
		"a long value":    {`{"body":"` + long + `","title":"short"}`, `{"body": "` + strings.Repeat("x", maxArgument-2) + `…, "title": "short"}`},
		"beyond the scan": {`{"title":"t","body":"` + strings.Repeat(long, 1000) + `"}`, `{"title": "t", "body": "` + strings.Repeat("x", maxArgument-2) + `…, …}`},
		"no object":       {`[1]`, "{}"},
		"broken":          {`{"a":`, `{"a": , …}`},
	} {
		if got := shortArguments(json.RawMessage(tt.raw)); got != tt.want {
			t.Errorf("%s: got %s\nwant %s", name, got, tt.want)
		}
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `,"key%d":%d`, i, i)
	}
	if got := shortArguments(json.RawMessage("{" + many.String()[1:] + "}")); len([]rune(got)) != maxArguments || !strings.HasSuffix(got, "…") {
		t.Errorf("got %d characters: %s", len([]rune(got)), got)
	}
}

func TestCallsThatFailedAreCounted(t *testing.T) {
	c := callRecorder{ended: map[Outcome]int{}}
	for _, rec := range []*entry{{}, {readOnly: true}} {
		c.add(rec)
		c.end(rec, callFailed)
	}
	rec := &entry{readOnly: true}
	c.add(rec)
	c.end(rec, CallDone)
	if calls, effects, _ := c.past(); calls != 3 || effects != nil {
		t.Errorf("%d calls, effects %q", calls, effects)
	}
}

func TestEffectsThatAreNotListedAreCounted(t *testing.T) {
	c := callRecorder{ended: map[Outcome]int{}}
	for range maxListedCalls + 7 {
		rec := &entry{Server: "bank", Tool: "transfer", Arguments: "{}"}
		c.add(rec)
		c.end(rec, CallDone)
	}
	if calls, effects, more := c.past(); calls != maxListedCalls+7 || len(effects) != maxListedCalls || more != 7 {
		t.Errorf("%d calls, %d effects and %d more", calls, len(effects), more)
	}
}

// TestCallsWithoutAnAnswerAreListedAsThat, also if there are more than are listed.
func TestCallsWithoutAnAnswerAreListedAsThat(t *testing.T) {
	c := callRecorder{ended: map[Outcome]int{}}
	done := &entry{Server: "bank", Tool: "pay", Arguments: "{}"}
	c.add(done)
	c.end(done, CallDone)
	waiting := func() {
		e := Effect{Bytes: json.RawMessage("{}"), Facts: mcpproxy.Facts{Method: mcpproxy.CallTool, Name: "transfer"}}
		e.Facts.Server.Name = "bank"
		c.begin(e, nil)
	}
	waiting()
	if calls, effects, more := c.past(); calls != 2 || more != 0 || !slices.Equal(effects, []string{"bank.pay {}", "bank.transfer {} (not answered yet)"}) {
		t.Errorf("%d calls, %q and %d more", calls, effects, more)
	}
	for range maxListedCalls {
		waiting()
	}
	if calls, effects, more := c.past(); calls != maxListedCalls+2 || len(effects) != maxListedCalls || more != 2 {
		t.Errorf("%d calls, %d effects and %d more", calls, len(effects), more)
	}
	if rec := c.begin(Effect{Facts: mcpproxy.Facts{Method: mcpproxy.ListPrompts}}, nil); rec != nil {
		t.Errorf("what is no call of a tool is on record: %+v", rec)
	}
}
