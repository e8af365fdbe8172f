package signals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/toolcell/toolcell/internal/signals/signalstest"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + traceID + "-b7ad6b7169203331-01"
)

// openTest opens signals that the environment of the test wants exported.
func openTest(t *testing.T, log *slog.Logger) *Signals {
	t.Helper()
	s := Open(Options{Version: "1.2.3", Log: log})
	if s == nil {
		t.Fatal("nothing is exported")
	}
	return s
}

// quiet is a log whose lines are errors of the test.
func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(failing{t}, nil)) }

type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("logged: %s", line)
	return len(line), nil
}

// carryOut is a request of a client as the program exports it.
func carryOut(s *Signals, meta map[string]any) {
	ctx, request := s.Request(context.Background(), Request{Method: "tools/call", Tool: "run_python", Protocol: "2025-06-18", Client: "a client 1.0", Meta: meta})
	inRun, run := s.Run(context.Background(), SpanOf(ctx), "abc")
	Resolved(inRun, time.Now().Add(-time.Second), nil)
	Started(inRun, time.Now(), "fork", nil)
	Asked(inRun, time.Now(), "answered")
	_, call := CallServer(inRun, Call{Method: "tools/call", Server: "tracker", Tool: "create_issue", Writes: true, Protocol: "2025-06-18", Address: "tracker.example.com", Port: 443})
	call.End(Failure{Type: ToolError})
	_, read := CallServer(inRun, Call{Method: "resources/read", Server: "local"})
	read.End(Failure{Code: "-32002"})
	_, prompt := CallServer(inRun, Call{Method: "prompts/get", Server: "local"})
	prompt.Prompt("prompts/get", "greet")
	prompt.End(Failure{})
	Refused(inRun, time.Now().Add(-time.Second), Refusal{Method: "tools/call", Server: "tracker", Tool: "delete_issue", Verdict: VerdictDeny, Type: DeniedByPolicy})
	took := Cost{CPU: 1500 * time.Millisecond, Peak: 20 << 20, Sent: 100, Received: 3 << 20}
	run.Took(took)
	run.EndRun("error", true, 3)
	s.RunTook("error", took)
	request.End(Failure{Type: ToolError})
}

func TestSpansHaveTheNamesOfTheConventions(t *testing.T) {
	c := signalstest.Start(t)
	s := openTest(t, quiet(t))
	carryOut(s, map[string]any{"traceparent": traceparent, "tracestate": "vendor=1"})
	s.Close()

	spans := map[string]signalstest.Span{}
	for _, one := range c.Spans() {
		spans[one.Name] = one
		if got := fmt.Sprintf("%x", one.TraceId); got != traceID {
			t.Errorf("%s is of the trace %s", one.Name, got)
		}
		if one.TraceState != "vendor=1" || one.EndTimeUnixNano < one.StartTimeUnixNano || one.StartTimeUnixNano == 0 {
			t.Errorf("%s: %v", one.Name, one.Span)
		}
	}
	for name, want := range map[string]struct {
		parent string // of the span in the client if empty
		kind   trace.Span_SpanKind
		failed bool
		attrs  map[string]string
	}{
		"tools/call run_python": {"", trace.Span_SPAN_KIND_SERVER, true, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "run_python", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2025-06-18",
			"network.transport": "pipe", "error.type": "tool_error", "toolcell.client.name": "a client 1.0", "toolcell.run.id": "abc",
		}},
		"toolcell.run":             {"tools/call run_python", trace.Span_SPAN_KIND_INTERNAL, true, map[string]string{"toolcell.run.id": "abc", "toolcell.run.status": "error", "error.type": "error", "toolcell.run.calls": "3", "toolcell.run.cpu.time": "1.5", "toolcell.run.memory.peak": "20971520", "toolcell.run.network.sent": "100", "toolcell.run.network.received": "3145728"}},
		"toolcell.package.resolve": {"toolcell.run", trace.Span_SPAN_KIND_INTERNAL, false, map[string]string{}},
		"toolcell.sandbox.start":   {"toolcell.run", trace.Span_SPAN_KIND_INTERNAL, false, map[string]string{"toolcell.start.kind": "fork"}},
		"toolcell.ask":             {"toolcell.run", trace.Span_SPAN_KIND_INTERNAL, false, map[string]string{"toolcell.ask.outcome": "answered"}},
		"tools/call create_issue": {"toolcell.run", trace.Span_SPAN_KIND_CLIENT, true, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "create_issue", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2025-06-18", "network.transport": "tcp",
			"toolcell.server.name": "tracker", "server.address": "tracker.example.com", "server.port": "443", "error.type": "tool_error", "toolcell.writes": "true",
		}},
		"tools/call delete_issue": {"toolcell.run", trace.Span_SPAN_KIND_INTERNAL, true, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "delete_issue", "gen_ai.operation.name": "execute_tool", "toolcell.server.name": "tracker",
			"toolcell.verdict": "deny", "error.type": "policy_denied",
		}},
		"resources/read": {"toolcell.run", trace.Span_SPAN_KIND_CLIENT, true, map[string]string{
			"mcp.method.name": "resources/read", "network.transport": "pipe", "toolcell.server.name": "local", "error.type": "-32002", "rpc.response.status_code": "-32002", "toolcell.writes": "false",
		}},
		"prompts/get greet": {"toolcell.run", trace.Span_SPAN_KIND_CLIENT, false, map[string]string{
			"mcp.method.name": "prompts/get", "network.transport": "pipe", "toolcell.server.name": "local", "gen_ai.prompt.name": "greet", "toolcell.writes": "false",
		}},
	} {
		got, ok := spans[name]
		if !ok {
			t.Errorf("there is no span %q", name)
			continue
		}
		parent := fmt.Sprintf("%x", got.ParentSpanId)
		if want.parent == "" && parent != "b7ad6b7169203331" || want.parent != "" && !bytes.Equal(got.ParentSpanId, spans[want.parent].SpanId) {
			t.Errorf("%s: the parent is %s", name, parent)
		}
		if remote := got.Flags&0x200 != 0; remote != (want.parent == "") || got.Flags&0x101 != 0x101 {
			t.Errorf("%s: flags %x", name, got.Flags)
		}
		failed := got.Status.GetCode() == trace.Status_STATUS_CODE_ERROR
		if got.Kind != want.kind || failed != want.failed || !maps.Equal(got.Attrs, want.attrs) {
			t.Errorf("%s: %v, failed %v, %v", name, got.Kind, failed, got.Attrs)
		}
	}
	if len(spans) != 9 {
		t.Errorf("the spans are %v", slices.Collect(maps.Keys(spans)))
	}
}

func TestWhatBeganEarlierIsExportedSo(t *testing.T) {
	c := signalstest.Start(t)
	s := openTest(t, quiet(t))
	Resolved(s.In(t.Context()), time.Now().Add(-time.Hour), errors.New("secret"))
	s.Close()
	got := c.Named("toolcell.package.resolve")
	if len(got) != 1 || got[0].EndTimeUnixNano-got[0].StartTimeUnixNano < uint64(time.Hour) || got[0].Attrs["error.type"] != "_OTHER" {
		t.Errorf("got %v", got)
	}
	if h := c.Metric("toolcell.package.resolve.duration").GetHistogram().GetDataPoints(); len(h) != 1 || h[0].GetSum() < 3600 {
		t.Errorf("the metric: %v", h)
	}
}

func TestMetricsHaveTheNamesOfTheConventions(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	s := openTest(t, quiet(t))
	carryOut(s, nil)
	s.ServerSession(time.Minute)
	s.ClientSession("tracker", "tracker.example.com", "2025-06-18", time.Second)
	s.Close()

	of := c.Batches()[0].Resource
	if of["service.name"] != "toolcell" || of["service.version"] != "1.2.3" || of["service.instance.id"] == "" || of["deployment.environment.name"] != "test" {
		t.Errorf("the resource is %v", of)
	}
	for _, m := range Metrics {
		got := c.Metric(m.Name)
		if got == nil || got.Unit != m.Unit || got.Description != m.Description || (got.GetHistogram() != nil) != (m.Kind == Histogram) || got.GetSum().GetIsMonotonic() != (m.Kind == Counter) {
			t.Errorf("%s: %v", m.Name, got)
		}
		for _, p := range got.GetHistogram().GetDataPoints() {
			var n uint64
			for _, b := range p.BucketCounts {
				n += b
			}
			if bounds := buckets[m.Unit]; !slices.Equal(p.ExplicitBounds, bounds) || len(p.BucketCounts) != len(bounds)+1 || n != p.Count || n == 0 || p.GetMin() > p.GetMax() || p.TimeUnixNano < p.StartTimeUnixNano {
				t.Errorf("%s: %v", m.Name, p)
			}
		}
	}
	if p := c.Metric("toolcell.run.active").GetSum().GetDataPoints(); len(p) != 1 || p[0].GetAsInt() != 0 {
		t.Errorf("active runs: %v", p)
	}
	refused := c.Metric("toolcell.call.refused").GetSum().GetDataPoints()
	if len(refused) != 1 || refused[0].GetAsInt() != 1 || !maps.Equal(signalstest.Attributes(refused[0].Attributes), map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "delete_issue", "gen_ai.operation.name": "execute_tool", "toolcell.server.name": "tracker",
		"toolcell.verdict": "deny", "error.type": "policy_denied",
	}) {
		t.Errorf("refused calls: %v", refused)
	}
	points, _ := c.Points("mcp.client.operation.duration")
	want := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "create_issue", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2025-06-18", "network.transport": "tcp",
		"toolcell.server.name": "tracker", "error.type": "tool_error",
	}
	if !slices.ContainsFunc(points, func(p map[string]string) bool { return maps.Equal(p, want) }) || len(points) != 3 {
		t.Errorf("calls of servers: %v", points)
	}
	for name, sums := range map[string]map[string]float64{
		"toolcell.run.cpu.time": {"": 1.5}, "toolcell.run.memory.peak": {"": 20 << 20}, "toolcell.run.network.io": {"transmit": 100, "receive": 3 << 20},
	} {
		points := c.Metric(name).GetHistogram().GetDataPoints()
		for _, p := range points {
			attrs := signalstest.Attributes(p.Attributes)
			if p.GetSum() != sums[attrs["network.io.direction"]] || attrs["toolcell.run.status"] != "error" {
				t.Errorf("%s: %v", name, p)
			}
		}
		if len(points) != len(sums) {
			t.Errorf("%s has %d series", name, len(points))
		}
	}
	points, _ = c.Points("toolcell.run.duration")
	if len(points) != 1 || points[0]["toolcell.run.status"] != "error" || points[0]["toolcell.run.id"] != "" {
		t.Errorf("runs: %v", points)
	}
}

// TestSignalsAreExportedAsTimePasses, and not only at the end of the process.
func TestSignalsAreExportedAsTimePasses(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	s := openTest(t, quiet(t))
	defer s.Close()
	carryOut(s, nil)
	c.Await("spans", func() bool { return len(c.Named("tools/call run_python")) == 1 })
	c.Await("metrics twice", func() bool { return len(c.Batches()) >= 2 })
	carryOut(s, nil)
	c.Await("spans again", func() bool { return len(c.Named("tools/call run_python")) == 2 })
	c.Await("metrics of both", func() bool {
		_, counts := c.Points("toolcell.run.duration")
		return slices.Equal(counts, []uint64{2})
	})
}

// TestNothingIsExportedUnlessWanted: nil works, and a warning says why if a variable is the reason.
func TestNothingIsExportedUnlessWanted(t *testing.T) {
	const key = "hush-hush"
	at := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
	for name, tt := range map[string]struct {
		env  map[string]string
		warn string // of both signals; none if empty
	}{
		"no endpoint":  {map[string]string{"OTEL_SERVICE_NAME": "x"}, ""},
		"disabled":     {map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ""},
		"none":         {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, ""},
		"exporters":    {map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "prometheus"}, "it has otlp, and none"},
		"grpc":         {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL names a protocol that toolcell does not speak; it speaks http/protobuf"},
		"JSON":         {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"no URL":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": key + ":4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no URL such as http://localhost:4318"},
		"headers":      {map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b," + key}, "entry 2 of OTEL_EXPORTER_OTLP_HEADERS"},
		"header lines": {map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=" + key + "%0d%0ax: y"}, "entry 1 of OTEL_EXPORTER_OTLP_HEADERS"},
		"timeout":      {map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds"},
		"compression":  {map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION is neither"},
		"certificate":  {map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: open /nowhere"},
		"client's key": {map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_KEY": "/nowhere"}, "OTEL_EXPORTER_OTLP_CLIENT_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "no endpoint" {
				setAll(t, at)
			}
			setAll(t, tt.env)
			var log bytes.Buffer
			s := Open(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if s != nil {
				t.Fatal("it is exported")
			}
			if n := strings.Count(log.String(), tt.warn); tt.warn == "" && log.Len() > 0 || tt.warn != "" && n != 2 || strings.Contains(log.String(), key) {
				t.Errorf("the log has:\n%s", &log)
			}
			carryOut(s, map[string]any{"traceparent": traceparent})
			s.ServerSession(1)
			s.ClientSession("", "", "", 1)
			if ctx := s.In(t.Context()); ctx != t.Context() || Meta(ctx) != nil || SpanOf(ctx) != nil {
				t.Error("the context was changed")
			}
			s.Close()
		})
	}
}

func setAll(t *testing.T, env map[string]string) {
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// TestOneSignalAlone: variables of one signal take precedence, and its endpoint is used as it is.
func TestOneSignalAlone(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/some/v1/traces")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=all")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=a%20key, x-other=1")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	s := openTest(t, quiet(t))
	carryOut(s, nil)
	s.Close()
	if len(c.Spans()) != 9 || len(c.Batches()) != 0 {
		t.Errorf("%d spans, %d exports of metrics", len(c.Spans()), len(c.Batches()))
	}
	h := c.Headers()[0]
	if h.Get("x-key") != "a key" || h.Get("x-other") != "1" || h.Get("Content-Encoding") != "gzip" || h.Get("User-Agent") != "toolcell/1.2.3" {
		t.Errorf("headers %v", h)
	}
	if got := c.Spans()[0].Resource["service.name"]; got != "mine" {
		t.Errorf("the service is %q", got)
	}
}

// TestMetricsWithoutTraces: then servers are told of no trace.
func TestMetricsWithoutTraces(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	s := openTest(t, quiet(t))
	ctx, span := s.Request(t.Context(), Request{Method: "tools/call", Meta: map[string]any{"traceparent": traceparent}})
	if meta := Meta(ctx); meta != nil {
		t.Errorf("servers get %v", meta)
	}
	span.End(Failure{})
	s.Close()
	if points, _ := c.Points("mcp.server.operation.duration"); len(points) != 1 || len(c.Spans()) != 0 {
		t.Errorf("%v, %d spans", points, len(c.Spans()))
	}
}

func TestSamplingIsThatOfTheVariables(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	s := openTest(t, quiet(t))
	carryOut(s, nil)
	s.Close()
	if _, counts := c.Points("toolcell.run.duration"); len(c.Spans()) != 0 || !slices.Equal(counts, []uint64{1}) {
		t.Errorf("%d spans, runs %v", len(c.Spans()), counts)
	}
}

// TestVariablesOfTheSDK: it says what it cannot use, and goes by the default.
func TestVariablesOfTheSDK(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "dice")
	log := &lockedBuffer{}
	s := openTest(t, slog.New(slog.NewTextHandler(log, nil)))
	carryOut(s, nil)
	s.Close()
	if len(c.Spans()) != 9 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), `msg="OpenTelemetry's SDK has an error" err="unsupported sampler: dice"`) {
		t.Errorf("%d spans; logged:\n%s", len(c.Spans()), log)
	}
}

func TestDeltaIsOfTheTimeSinceTheLastExport(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Delta")
	s := openTest(t, quiet(t))
	carryOut(s, nil)
	s.Close()
	if h := c.Metric("toolcell.run.duration").GetHistogram(); h.GetAggregationTemporality() != 1 {
		t.Errorf("runs: %v", h)
	}
	if sum := c.Metric("toolcell.run.active").GetSum(); sum.GetAggregationTemporality() != 2 || sum.IsMonotonic {
		t.Errorf("active runs: %v", sum)
	}
}

// TestServersGetTheContext of the trace, and the client's baggage.
func TestServersGetTheContext(t *testing.T) {
	c := signalstest.Start(t)
	s := openTest(t, quiet(t))
	_, request := s.Request(t.Context(), Request{Method: "tools/call", Meta: map[string]any{
		"traceparent": traceparent, "tracestate": "vendor=1", "baggage": "user=me", "progressToken": "x",
	}})
	inRun, run := s.Run(context.Background(), request, "abc")
	inCall, call := CallServer(inRun, Call{Method: "tools/call", Server: "s", Tool: "t"})
	got := Meta(inCall)
	call.End(Failure{})
	run.EndRun("success", false, 1)
	request.End(Failure{})
	s.Close()
	want := map[string]any{"tracestate": "vendor=1", "baggage": "user=me", "traceparent": fmt.Sprintf("00-%s-%x-01", traceID, c.Named("tools/call t")[0].SpanId)}
	if !maps.Equal(got, want) {
		t.Errorf("servers get %v, want %v", got, want)
	}
}

// TestContextOfClientsIsChecked: what is no context begins a trace of its own.
func TestContextOfClientsIsChecked(t *testing.T) {
	c := signalstest.Start(t)
	s := openTest(t, quiet(t))
	for _, meta := range []map[string]any{
		{"traceparent": 7},
		{"traceparent": "00-" + traceID},
		{"traceparent": "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"},
		{"traceparent": traceparent + strings.Repeat("-", maxContext)},
		{"traceparent": []any{traceparent}},
		{"tracestate": "a=b", "baggage": "\x00"},
	} {
		_, span := s.Request(t.Context(), Request{Method: "tools/call", Meta: meta})
		span.End(Failure{})
	}
	s.Close()
	for _, one := range c.Spans() {
		if len(one.ParentSpanId) > 0 || one.TraceState != "" || fmt.Sprintf("%x", one.TraceId) == traceID {
			t.Errorf("%v", one)
		}
	}
	if len(c.Spans()) != 6 {
		t.Errorf("%d spans", len(c.Spans()))
	}
}

// TestServersCannotMakeUpSeries without end, by names or codes.
func TestServersCannotMakeUpSeries(t *testing.T) {
	c := signalstest.Start(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	s := openTest(t, quiet(t))
	ctx := s.In(t.Context())
	for i := range 3 * maxSeries {
		_, call := CallServer(ctx, Call{Method: "resources/read", Server: "s"})
		call.End(Failure{Code: fmt.Sprint(i - maxSeries)})
	}
	for i := range 3 * maxSeries {
		_, call := CallServer(ctx, Call{Method: "tools/call", Server: "s", Tool: fmt.Sprint("tool", i)})
		call.End(Failure{})
	}
	s.Close()
	points, counts := c.Points("mcp.client.operation.duration")
	var all, other, over uint64
	for i, p := range points {
		all += counts[i]
		if p["error.type"] == OtherError {
			other = counts[i]
		}
		if p["otel.metric.overflow"] == "true" {
			over = counts[i]
		}
	}
	if len(points) > maxSeries || all != 6*maxSeries || other != 3*maxSeries-200 || over == 0 {
		t.Errorf("%d series of %d calls, of which %d failed otherwise, and %d are of no series", len(points), all, other, over)
	}
}

func TestNamesOfServersAreCleaned(t *testing.T) {
	c := signalstest.Start(t)
	s := openTest(t, quiet(t))
	_, call := CallServer(s.In(t.Context()), Call{Method: "tools/call", Server: "s", Tool: "a\x1b[2J\nb" + strings.Repeat("x", 1<<20)})
	call.End(Failure{})
	s.Close()
	got := c.Spans()[0]
	if name := got.Attrs["gen_ai.tool.name"]; !strings.HasPrefix(name, "a[2J b") || len(name) > maxName || len(got.Name) > maxName || strings.ContainsAny(got.Name, "\x1b\n") {
		t.Errorf("%q, %q", got.Name, name)
	}
}

func TestLogLinesSayWhatTheyBelongTo(t *testing.T) {
	signalstest.Start(t)
	s := openTest(t, quiet(t))
	defer s.Close()
	var out bytes.Buffer
	log := slog.New(LogHandler{slog.NewJSONHandler(&out, nil)}).With("a", 1)
	ctx, request := s.Request(WithRun(t.Context(), "abc"), Request{Method: "tools/call", Meta: map[string]any{"traceparent": traceparent}})
	log.InfoContext(ctx, "in a run")
	request.End(Failure{})
	log.InfoContext(t.Context(), "outside")
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[0], `"a":1,"run":"abc","trace_id":"`+traceID+`","span_id":"`) || strings.Contains(lines[1], "run\":") || strings.Contains(lines[1], "_id") {
		t.Errorf("logged:\n%s", &out)
	}
}
