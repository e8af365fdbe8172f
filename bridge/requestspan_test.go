package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/signals/signalstest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

const traceID = "0af7651916cd43dd8448eb211c80319c"

// newExporting makes a server that exports, with a server up whose tools are given and on one of
// which, ask, the user is asked. seen gets the _meta that up gets of calls.
func newExporting(t *testing.T, tools map[string]func(context.Context, json.RawMessage) (string, error), log *slog.Logger, seen func(mcp.Meta)) (*Server, *signals.Signals) {
	t.Helper()
	exported := signals.Open(signals.Options{Version: "1", Log: log})
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\nask = ['ask']\ndeny = ['forbidden']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := bridgetest.Options{Tool: func(s *mcp.Server, name string) bool {
		if name == "ask" { // once is enough
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
					if call, ok := r.(*mcp.CallToolRequest); ok {
						seen(call.Params.Meta)
					}
					return next(ctx, method, r)
				}
			})
		}
		return false
	}}
	options.Proxy.Signals = exported
	s := newServer(t, nil, func(o *run.Options) {
		o.Policy, o.Signals, o.Log, o.Sessions = policy.Load(file, true, nil), exported, log, 4
		o.Upstreams = fakeUpstreams{"up": tools}.Proxy(t, options)
	})
	s.o.Signals = exported
	return s, exported
}

// TestARequestIsOneTrace from the client's span to those of servers, and no value is in it.
func TestARequestIsOneTrace(t *testing.T) {
	const secret = "correct-horse-battery"
	c := signalstest.Start(t)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "50") // also while the run goes on
	var parents []string
	result := func(context.Context, json.RawMessage) (string, error) { return "the result is " + secret, nil }
	s, exported := newExporting(t, map[string]func(context.Context, json.RawMessage) (string, error){
		"ask": result, "read": result, "forbidden": result,
		"fail": func(context.Context, json.RawMessage) (string, error) {
			return "", errors.New("failed with " + secret)
		},
		"refuse": func(context.Context, json.RawMessage) (string, error) {
			return "", &jsonrpc.Error{Code: -32602, Message: "refused with " + secret}
		},
	}, slog.New(slog.DiscardHandler), func(m mcp.Meta) { parents = append(parents, fmt.Sprint(m["traceparent"])) })
	client := connectForms(t, s, "2025-11-25", allowCall)
	code := fmt.Sprintf(`
from mcp import runtime
secret = %q
for call in (mcp_up.ask, mcp_up.fail, mcp_up.refuse, mcp_up.read):
    try:
        print(await call(value=secret))
    except Exception as e:
        print(e)
await runtime.read_resource("up", "x://" + secret)
await runtime.get_prompt("up", "p", {"n": secret})
for refused in (runtime.get_prompt("up", secret), mcp_up.forbidden(value=secret), runtime.call_tool("up", secret, {}), runtime.call_tool(secret, "x", {})):
    try:
        await refused
    except Exception as e:
        print(type(e))
raise ValueError(secret)
`, secret)
	res, err := client.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "run_python", Arguments: map[string]any{"code": code, "servers": []string{"up"}, "timeout": 100, "session": "of-" + secret},
		Meta: mcp.Meta{"traceparent": "00-" + traceID + "-b7ad6b7169203331-01"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || strings.Count(text, secret) < 5 {
		t.Fatalf("the run did not get so far:\n%s", text)
	}
	if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: secret}); err == nil {
		t.Error("a tool that there is not was called")
	}
	client.Close()
	s.runs.Close()
	exported.Close()

	if strings.Contains(c.Raw(), secret) {
		t.Error("the secret was exported")
	}
	var names []string
	ids := map[string]signalstest.Span{}
	for _, one := range c.Spans() {
		if fmt.Sprintf("%x", one.TraceId) == traceID {
			names = append(names, one.Name)
			ids[string(one.SpanId)] = one
		}
	}
	want := []string{
		"tools/call run_python", "toolcell.run", "toolcell.sandbox.start", "toolcell.ask", "tools/call ask", "tools/call fail", "tools/call refuse", "tools/call read",
		"resources/read", "prompts/get p", "prompts/get", "tools/call forbidden", "tools/call", "tools/call",
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the trace has %q", names)
	}
	for _, one := range ids {
		parent := ids[string(one.ParentSpanId)].GetName()
		if one.Name == "tools/call run_python" && parent != "" || one.Name == "toolcell.run" && parent != "tools/call run_python" || parent == "" && one.Name != "tools/call run_python" {
			t.Errorf("%s is part of %q", one.Name, parent)
		}
	}
	for name, failed := range map[string]string{"tools/call run_python": "tool_error", "toolcell.run": "error", "tools/call ask": "", "tools/call fail": "tool_error", "tools/call refuse": "-32602"} {
		if got := c.Named(name)[0]; got.Attrs["error.type"] != failed {
			t.Errorf("%s failed with %q", name, got.Attrs["error.type"])
		}
	}
	var refused []string
	for _, one := range ids {
		if one.Attrs["toolcell.verdict"] != "" {
			refused = append(refused, fmt.Sprint(one.Name, " ", one.Attrs["toolcell.server.name"], " ", one.Attrs["error.type"]))
		}
	}
	slices.Sort(refused)
	if !slices.Equal(refused, []string{"tools/call  unknown_server", "tools/call forbidden up policy_denied", "tools/call up unknown_tool"}) {
		t.Errorf("refused: %q", refused)
	}
	other := slices.IndexFunc(c.Spans(), func(s signalstest.Span) bool { return s.Name == "tools/call" && s.Attrs["toolcell.verdict"] == "" })
	if got := c.Spans()[other]; got.Attrs["error.type"] != "-32602" || got.Attrs["gen_ai.tool.name"] != "" {
		t.Errorf("a call of another tool: %v", got.Attrs)
	}
	if got := c.Named("tools/call ask")[0].Attrs; got["toolcell.server.name"] != "up" || got["network.transport"] != "tcp" || got["server.address"] != "127.0.0.1" || got["mcp.protocol.version"] == "" {
		t.Errorf("a call of a server: %v", got)
	}
	for name, writes := range map[string]string{"tools/call ask": "true", "tools/call read": "false", "resources/read": "false", "prompts/get p": "false"} {
		if got := c.Named(name)[0].Attrs["toolcell.writes"]; got != writes {
			t.Errorf("that %s writes is %q", name, got)
		}
	}
	for i, name := range []string{"ask", "fail", "refuse", "read"} {
		if want := fmt.Sprintf("00-%s-%x-01", traceID, c.Named("tools/call " + name)[0].SpanId); parents[i] != want {
			t.Errorf("%s got the traceparent %s, want %s", name, parents[i], want)
		}
	}
	checkMetrics(t, c)
}

func checkMetrics(t *testing.T, c *signalstest.Collector) {
	t.Helper()
	points, counts := c.Points("mcp.client.operation.duration")
	var tools []string
	for i, p := range points {
		tools = append(tools, fmt.Sprint(p["mcp.method.name"], " ", p["gen_ai.tool.name"], " ", p["error.type"], " ", counts[i]))
	}
	slices.Sort(tools)
	want := []string{"prompts/get  -32602 1", "prompts/get   1", "resources/read   1", "tools/call ask  1", "tools/call fail tool_error 1", "tools/call read  1", "tools/call refuse -32602 1"}
	slices.Sort(want)
	if !slices.Equal(tools, want) {
		t.Errorf("calls of servers: %q", tools)
	}
	for _, name := range []string{"toolcell.run.duration", "toolcell.sandbox.start.duration", "toolcell.ask.duration", "mcp.server.operation.duration"} {
		if points, counts := c.Points(name); len(points) == 0 || counts[0] == 0 {
			t.Errorf("%s: %v", name, points)
		}
	}
	if p := c.Metric("toolcell.run.active").GetSum().GetDataPoints(); len(p) != 1 || p[0].GetAsInt() != 0 {
		t.Errorf("active runs: %v", p)
	}
	var most int64
	for _, b := range c.Batches() {
		for _, m := range b.Metrics {
			if m.Name == "toolcell.run.active" {
				most = max(most, m.GetSum().DataPoints[0].GetAsInt())
			}
		}
	}
	if most != 1 {
		t.Errorf("at most %d runs were active", most)
	}
}

// TestARequestThatComesBackIsLinked to the run that another one began.
func TestARequestThatComesBackIsLinked(t *testing.T) {
	c := signalstest.Start(t)
	s, exported := newExporting(t, map[string]func(context.Context, json.RawMessage) (string, error){
		"ask": func(context.Context, json.RawMessage) (string, error) { return "done", nil },
	}, slog.New(slog.DiscardHandler), func(mcp.Meta) {})
	client := connect(t, s) // which shows no forms
	_, fields, _ := callTool(t, client, map[string]any{"code": "await mcp_up.ask()", "servers": []string{"up"}})
	id := approvalID(fields)
	if err := s.runs.Queue().Decide(id, consent.Answer{Choice: consent.ForCall}); err != nil {
		t.Fatal(err)
	}
	if text, _, isError := callTool(t, client, map[string]any{"code": "", "session": id}); isError {
		t.Fatal(text)
	}
	s.runs.Close()
	exported.Close()
	calls, ran := c.Named("tools/call run_python"), c.Named("toolcell.run")
	if len(calls) != 2 || len(ran) != 1 || !bytes.Equal(ran[0].ParentSpanId, calls[0].SpanId) || len(calls[0].Links) != 0 {
		t.Fatalf("%v, %v", calls, ran)
	}
	if l := calls[1].Links; len(l) != 1 || !bytes.Equal(l[0].SpanId, ran[0].SpanId) || calls[1].Attrs["toolcell.run.id"] != ran[0].Attrs["toolcell.run.id"] {
		t.Errorf("the second call: %v", calls[1])
	}
}

// TestLogLinesOfARunNameIt and its trace.
func TestLogLinesOfARunNameIt(t *testing.T) {
	c := signalstest.Start(t)
	var out bytes.Buffer
	log := slog.New(signals.LogHandler{Handler: slog.NewJSONHandler(&out, nil)})
	s, exported := newExporting(t, map[string]func(context.Context, json.RawMessage) (string, error){}, log, func(mcp.Meta) {})
	callTool(t, connect(t, s), map[string]any{"code": "1"})
	s.runs.Close()
	exported.Close()
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	ran := c.Named("toolcell.run")[0]
	if line["msg"] != "run" || line["run"] != ran.Attrs["toolcell.run.id"] || line["trace_id"] != fmt.Sprintf("%x", ran.TraceId) || line["span_id"] != fmt.Sprintf("%x", ran.SpanId) {
		t.Errorf("logged %v", maps.All(line))
	}
}

// TestRunsOfASessionShareItsSandbox: the first starts it.
func TestRunsOfASessionShareItsSandbox(t *testing.T) {
	c := signalstest.Start(t)
	s, exported := newExporting(t, map[string]func(context.Context, json.RawMessage) (string, error){}, slog.New(slog.DiscardHandler), func(mcp.Meta) {})
	for range 2 {
		if r := s.runs.Do(t.Context(), run.Request{Code: "1", Session: "s", Timeout: 2 * time.Minute}); r.IsError() {
			t.Fatal(r.Error)
		}
	}
	s.runs.Close()
	exported.Close()
	var kinds []string
	for _, one := range c.Named("toolcell.sandbox.start") {
		kinds = append(kinds, one.Attrs["toolcell.start.kind"])
	}
	if !slices.Equal(kinds, []string{"cold", "session"}) || len(c.Named("toolcell.run")) != 2 {
		t.Errorf("started by %q", kinds)
	}
}
