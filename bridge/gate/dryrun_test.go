package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// planned plans a call of a tool that writes.
func planned(t *testing.T, g *Gate, args string) string {
	t.Helper()
	tool := mcpproxy.CheckedTool{}
	tool.Name, tool.OutputSchema = "create", json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}}}`)
	e := Effect{Bytes: json.RawMessage(args), Facts: mcpproxy.Facts{Method: mcpproxy.CallTool, Name: "create", Tool: tool, Server: config.Server{Name: "github"}}}
	number := g.planner.count() + 1
	answer, err := g.plan(t.Context(), e, number)
	if err != nil {
		t.Fatal(err)
	}
	g.Settled(number)
	return string(answer)
}

func planning() *Gate { return New(Options{Policy: policy.None().NewEnforcer(), Plan: true}) }

func TestPlannedCallsAreNumberedAndBounded(t *testing.T) {
	g := planning()
	if got := planned(t, g, `{"a":1}`); got != `[1,{"number":"int"}]` {
		t.Errorf("the first answer is %s", got)
	}
	long := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 3000))
	for range maxPlannedCalls + 4 {
		planned(t, g, long)
	}
	plan := g.Plan()
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
	g := planning()
	planned(t, g, `{}`)
	effect := func(reads bool, args string) Effect {
		e := Effect{Bytes: json.RawMessage(args), Facts: mcpproxy.Facts{Method: mcpproxy.CallTool}}
		e.Facts.Tool.ReadsOnly = reads
		return e
	}
	for args, want := range map[string]bool{
		`{}`: false, `{"id":"<result 1>.number"}`: true, `{"id":"a <result 0> <result 1>"}`: true,
		`{"id":"<result 12"}`: true, `{"id":"a <r"}`: true, `{"id":"ult 1>.n"}`: true, `{"id":"1> b"}`: true, `{"id":"a <b> 1> c"}`: false,
		`{"id":"<result 2>"}`: false, `{"id":"<result x>"}`: false, `{"id":"<result `: false, `{"id":"<"}`: false,
	} {
		if got := g.planner.plans(t.Context(), effect(true, args)); got != want {
			t.Errorf("%s: planned is %v", args, got)
		}
	}
	claims := effect(false, `{}`)
	claims.Facts.Tool.Annotations = json.RawMessage(`{"readOnlyHint":true}`)
	if !g.planner.plans(t.Context(), claims) {
		t.Error("a tool whose hint was not accepted is called")
	}
}

// TestPlaceholdersAreFoundInLongTexts, which are searched in parts.
func TestPlaceholdersAreFoundInLongTexts(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	g := New(Options{})
	for _, at := range []int{0, 64<<10 - 5, 100 << 10, 300 << 10} {
		text := func(hidden string) []byte {
			return []byte(`"` + strings.Repeat("x", at) + hidden + strings.Repeat("x", 300<<10-at) + `"`)
		}
		if used, err := usedResult(t.Context(), text("<result 1>"), 1); used != "<result 1>" || err != nil {
			t.Errorf("at %d: %q, %v", at, used, err)
		}
		if used, err := usedResult(t.Context(), text("<result 2>"), 1); used != "" || err != nil {
			t.Errorf("another, at %d: %q, %v", at, used, err)
		}
		if cut := text(`<res","`); !usesCutPlaceholder(t.Context(), cut) || g.planner.usesResult(t.Context(), cut) {
			t.Errorf("cut, at %d: it is not found, or where there is none", at)
		}
		if usesCutPlaceholder(t.Context(), text("")) || !usesCutPlaceholder(canceled, text("")) {
			t.Errorf("a text without one, at %d", at)
		}
		if err := g.findPlaceholder(canceled, text("")); !errors.Is(err, context.Canceled) {
			t.Errorf("a look that was cancelled: %v", err)
		}
	}
	if answer, err := planning().plan(canceled, Effect{}, 2); !errors.Is(err, context.Canceled) || answer != nil {
		t.Errorf("a call that waits for others and was cancelled: %s, %v", answer, err)
	}
}

// reading are the requests that a dry run sends, with a text in what is asked for.
func reading(text string) []Request {
	body := func(format string) json.RawMessage { return json.RawMessage(strings.Replace(format, "%s", text, 1)) }
	return []Request{
		{Method: mcpproxy.ReadResource, Server: "up", Name: "x:/" + text},
		{Method: mcpproxy.GetPrompt, Server: "up", Name: "p", Arguments: body(`{"n":"%s"}`)},
		{Method: mcpproxy.CallTool, Server: "up", Name: "read", Arguments: body(`{"deep":[{"%s":1}]}`), Unchecked: true},
	}
}

// TestReadsWithAPlannedResultAreNotSent, in a plan or after one.
func TestReadsWithAPlannedResultAreNotSent(t *testing.T) {
	up := newUpstream(t)
	do := func(plan bool, text string, r Request) (*Gate, error) {
		up.sent.Store(0)
		g := New(Options{Policy: policy.None().NewEnforcer(), Upstreams: up.Proxy, Granted: granted, Plan: plan})
		g.Resume(2)
		r.Raw = fmt.Appendf(nil, `{"x":%q}`, text)
		_, err := g.Do(t.Context(), r)
		return g, err
	}
	for _, text := range []string{"<result 1>.number", "<RESULT 2>.TITLE", "%3Cresult%201%3E.number", "&lt;result 1&gt;", "a <result 9> <result 2>", "%3cresult+1%3e"} {
		for _, r := range reading(text) {
			if _, err := do(false, text, r); up.sent.Load() > 0 || err == nil || !strings.Contains(err.Error(), "stands for the result of a call that was only planned") {
				t.Errorf("%s of %q: %v, sent %d", r.Method, text, err, up.sent.Load())
			}
			if g, err := do(true, text, r); up.sent.Load() > 0 || err != nil || len(g.Plan().Calls) != 1 {
				t.Errorf("%s of %q in a plan: %v, sent %d, %+v", r.Method, text, err, up.sent.Load(), g.Plan())
			}
		}
	}
	for _, text := range []string{"<result 3>", "result 1", "<result>", "<result x>", "<resulted 1>"} {
		for _, r := range reading(text) {
			if _, err := do(false, text, r); r.Method != mcpproxy.ReadResource && (err != nil || up.sent.Load() != 1) {
				t.Errorf("%s of %q: %v, sent %d times", r.Method, text, err, up.sent.Load())
			}
		}
	}
	for text, want := range map[string]bool{"see <resu": true, "ult 1> of it": true, "a <b> and 1> c": false, "<": false, "x < re": false} {
		if _, err := do(false, text, reading("x")[2]); (err != nil) != want {
			t.Errorf("%q, which may be cut: %v", text, err)
		}
	}
	g := New(Options{Policy: policy.None().NewEnforcer(), Upstreams: up.Proxy, Granted: granted})
	if err := g.checkPlaceholders(t.Context(), Request{Method: mcpproxy.CallTool, Raw: []byte(`"<result 1>"`)}); err != nil {
		t.Errorf("where nothing was planned: %v", err)
	}
}

// TestNothingIsReadForWhatDoesNotShowItsResult: the code knows something of a planned
// result, such as how often a loop has run.
func TestNothingIsReadForWhatDoesNotShowItsResult(t *testing.T) {
	for _, r := range reading("1") {
		up := newUpstream(t)
		g := New(Options{Policy: policy.None().NewEnforcer(), Upstreams: up.Proxy, Granted: granted, Plan: true})
		r.Derived = true
		for number := range 2 { // what is known stays known
			r.Number = number + 1
			if _, err := g.Do(t.Context(), r); err != nil || up.sent.Load() > 0 || len(g.Plan().Calls) != number+1 {
				t.Errorf("%s: %v; sent %d, %+v", r.Method, err, up.sent.Load(), g.Plan())
			}
			g.Settled(r.Number)
			r.Derived = false
		}
	}
	sends := Request{Method: mcpproxy.CallTool, Derived: true}
	if err := New(Options{}).checkPlaceholders(t.Context(), sends); err == nil {
		t.Error("a real run sends it")
	}
	if err := New(Options{}).checkPlaceholders(t.Context(), Request{Method: mcpproxy.ListPrompts, Derived: true}); err != nil {
		t.Errorf("what sends nothing: %v", err)
	}
}
