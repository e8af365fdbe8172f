package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/policy"
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
	p := newPlanner(0)
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
	p := newPlanner(0)
	planned(t, p, `{}`)
	reads := mcpproxy.CheckedTool{ReadsOnly: true}
	for args, want := range map[string]bool{
		`{}`: false, `{"id":"<result 1>.number"}`: true, `{"id":"a <result 0> <result 1>"}`: true,
		`{"id":"<result 12"}`: true, `{"id":"a <r"}`: true, `{"id":"ult 1>.n"}`: true, `{"id":"1> b"}`: true, `{"id":"a <b> 1> c"}`: false,
		`{"id":"<result 2>"}`: false, `{"id":"<result x>"}`: false, `{"id":"<result `: false, `{"id":"<"}`: false,
	} {
		if got := p.plans(t.Context(), reads, json.RawMessage(args)); got != want {
			t.Errorf("%s: planned is %v", args, got)
		}
	}
	claims := mcpproxy.CheckedTool{Annotations: json.RawMessage(`{"readOnlyHint":true}`)}
	if !p.plans(t.Context(), claims, json.RawMessage(`{}`)) {
		t.Error("a tool whose hint was not accepted is called")
	}
}

// TestReadsWithAPlannedResultAreNotSent, in a plan or after one.
func TestReadsWithAPlannedResultAreNotSent(t *testing.T) {
	reads := map[string]string{
		"read_resource": `{"server":"up","uri":"x:/%s"}`,
		"get_prompt":    `{"server":"up","name":"p","arguments":{"n":"%s"}}`,
		"call_tool":     `{"server":"up","tool":"read","arguments":{"deep":[{"%s":1}]},"unchecked":true}`,
	}
	written := []string{
		"<result 1>.number", "<RESULT 2>.TITLE", "%3Cresult%201%3E.number", "&lt;result 1&gt;", `\u003cresult 1\u003e`, "a <result 9> <result 2>", "%3cresult+1%3e",
	}
	for method, params := range reads {
		for _, text := range written {
			raw := json.RawMessage(strings.Replace(params, "%s", text, 1))
			for _, plan := range []bool{false, true} {
				up := &readingServer{}
				api := New(Options{Policy: policy.None().NewRun(), Upstreams: up, Granted: map[string]bool{"up": true}, Plan: plan, Planned: 2})
				answer, err := api.Call(t.Context(), 1, method, raw)
				if up.got > 0 || !plan && (err == nil || !strings.Contains(err.Error(), "stands for the result of a call that was only planned")) {
					t.Errorf("%s %s, plan: %v: %v; sent: %d", method, raw, plan, err, up.got)
				}
				if plan && (err != nil || len(api.Plan().Calls) != 1 || !strings.Contains(string(answer.JSON), "1")) {
					t.Errorf("%s %s in a plan: %s, %v, %+v", method, raw, answer.JSON, err, api.Plan())
				}
			}
		}
		for _, text := range []string{"<result 3>", "result 1", "<result>", "<result x>", "<resulted 1>"} {
			up := &readingServer{}
			api := New(Options{Policy: policy.None().NewRun(), Upstreams: up, Granted: map[string]bool{"up": true}, Planned: 2})
			if _, err := api.Call(t.Context(), 1, method, json.RawMessage(strings.Replace(params, "%s", text, 1))); err != nil || up.got != 1 {
				t.Errorf("%s of %q: %v, sent %d times", method, text, err, up.got)
			}
		}
		api := New(Options{Policy: policy.None().NewRun(), Upstreams: &readingServer{}, Granted: map[string]bool{"up": true}})
		if _, err := api.Call(t.Context(), 1, method, json.RawMessage(strings.Replace(params, "%s", "<result 1>", 1))); err != nil {
			t.Errorf("%s where nothing was planned: %v", method, err)
		}
	}
}

// readingServer is up, and counts what is sent to it.
type readingServer struct {
	oneServer
	got int
}

func (s *readingServer) Call(ctx context.Context, r mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	t := mcpproxy.CheckedTool{Name: r.Tool, ReadsOnly: true}
	if r.Plans != nil && r.Plans(ctx, t, r.Arguments) {
		return mcpproxy.CallResult{}, &mcpproxy.Planned{Server: r.Server, Tool: t.Tool, Arguments: r.Arguments}
	}
	s.got++
	return mcpproxy.CallResult{JSON: json.RawMessage(`{}`)}, nil
}

func (s *readingServer) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	s.got++
	return json.RawMessage(`{}`), nil
}

func (s *readingServer) GetPrompt(context.Context, string, string, map[string]string) (json.RawMessage, error) {
	s.got++
	return json.RawMessage(`{}`), nil
}

// TestNothingIsReadForWhatDoesNotShowItsResult: the code knows something of a planned
// result, such as how often a loop has run.
func TestNothingIsReadForWhatDoesNotShowItsResult(t *testing.T) {
	for method, params := range map[string]string{
		"read_resource": `{"server":"up","uri":"x:/1","derived":true}`,
		"get_prompt":    `{"server":"up","name":"p","arguments":{"n":"1"},"derived":true}`,
		"call_tool":     `{"server":"up","tool":"read","arguments":{"n":1},"unchecked":true,"derived":true}`,
	} {
		for _, plan := range []bool{false, true} {
			up := &readingServer{}
			api := New(Options{Policy: policy.None().NewRun(), Upstreams: up, Granted: map[string]bool{"up": true}, Plan: plan})
			answer, err := api.Call(t.Context(), 1, method, json.RawMessage(params))
			if up.got > 0 || (err == nil) != plan {
				t.Errorf("%s, plan: %v: %s, %v; sent %d", method, plan, answer.JSON, err, up.got)
			}
			later := strings.Replace(params, `,"derived":true`, "", 1) // what is known stays known
			if _, err := api.Call(t.Context(), 2, method, json.RawMessage(later)); plan && (err != nil || up.got > 0 || len(api.Plan().Calls) != 2) {
				t.Errorf("%s later: %v, sent %d, %+v", method, err, up.got, api.Plan())
			}
		}
	}
}
