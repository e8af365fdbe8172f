package hostapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

func planned(t *testing.T, p *planner, args string) string {
	t.Helper()
	number := p.count() + 1
	answer, err := p.add(t.Context(), number, &mcpproxy.Planned{Server: "github", Tool: catalog.Tool{
		Name: "create", OutputSchema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}}}`),
	}, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	p.decide(number)
	return string(answer)
}

func TestPlannedCallsAreNumberedAndBounded(t *testing.T) {
	p := newPlanner()
	if got := planned(t, p, `{"a":1}`); got != `[1,{"number":"int"}]` {
		t.Errorf("the first answer is %s", got)
	}
	long := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 3000))
	for range maxPlannedCalls + 4 {
		planned(t, p, long)
	}
	plan := (&API{planner: p}).Plan()
	if len(plan.Calls) != maxPlannedCalls || plan.LeftOut != 5 {
		t.Errorf("%d calls and %d left out", len(plan.Calls), plan.LeftOut)
	}
	var short string
	if err := json.Unmarshal(plan.Calls[1].Arguments, &short); err != nil || len(short) > maxPlannedArguments+30 || !strings.HasSuffix(short, "… (3008 bytes)") {
		t.Errorf("long arguments are kept as %s (%v)", plan.Calls[1].Arguments, err)
	}
	if string(plan.Calls[0].Arguments) != `{"a":1}` {
		t.Errorf("short arguments are kept as %s", plan.Calls[0].Arguments)
	}
}

func TestReadingToolsAreOnlyPlannedIfTheyNeedAResult(t *testing.T) {
	p := newPlanner()
	planned(t, p, `{}`)
	reads := mcpproxy.CheckedTool{Standing: pins.Standing{ReadsOnly: true}}
	for args, want := range map[string]bool{
		`{}`: false, `{"id":"<result 1>.number"}`: true, `{"id":"a <result 0> <result 1>"}`: true,
		`{"id":"<result 2>"}`: false, `{"id":"<result 1"}`: false, `{"id":"<result x>"}`: false, `{"id":"<result `: false,
	} {
		if got := p.plans(reads, json.RawMessage(args)); got != want {
			t.Errorf("%s: planned is %v", args, got)
		}
	}
	claims := mcpproxy.CheckedTool{Tool: catalog.Tool{Annotations: json.RawMessage(`{"readOnlyHint":true}`)}}
	if !p.plans(claims, json.RawMessage(`{}`)) {
		t.Error("a tool whose hint was not accepted is called")
	}
}
