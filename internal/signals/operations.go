package signals

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// A Failure is how a request has failed; the zero value is that it has not.
type Failure struct {
	// Type is ToolError, or a word of ours. It may be empty if there is a Code.
	Type string
	// Code is that of a JSON-RPC error.
	Code string
}

func (f Failure) attributes() (errorType string, more []attribute.KeyValue) {
	if f.Code != "" {
		more = append(more, attribute.String(attrStatusCode, f.Code))
	}
	return cmp.Or(f.Type, f.Code), more
}

// A Request is one of a client.
type Request struct {
	Method   string
	Tool     string // of ours, that it calls; empty for other methods, and for a tool that there is not
	Protocol string // version of MCP
	Client   string // what it calls itself
	Meta     map[string]any
}

// Request begins the Span of a request of a client, over a pipe, which End ends. The request is
// part of what its Meta says.
func (s *Signals) Request(ctx context.Context, r Request) (context.Context, *Span) {
	if s == nil {
		return ctx, nil
	}
	sp := Span{metric: metricServerOperation, series: ofMethod(r.Method, attrTool, r.Tool, r.Protocol)}
	sp.series = append(sp.series, attribute.String(attrTransport, pipe))
	var more []attribute.KeyValue
	if r.Client != "" {
		more = append(more, named(attrClient, r.Client))
	}
	return s.begin(withRemote(ctx, r.Meta), sp, spanName(r.Method, r.Tool), trace.SpanKindServer, more...)
}

// ofMethod returns the attributes of a request that name what it is about.
func ofMethod(method, key, name, protocol string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{named(attrMethod, method)}
	if method == callTool {
		attrs = append(attrs, attribute.String(attrOperation, executeTool))
	}
	if name != "" {
		attrs = append(attrs, named(key, name))
	}
	if protocol != "" {
		attrs = append(attrs, named(attrProtocol, protocol))
	}
	return attrs
}

// spanName returns "METHOD NAME".
func spanName(method, name string) string {
	if name != "" {
		method += " " + name
	}
	return named("", method).Value.AsString()
}

// End ends the Span of a request.
func (sp *Span) End(f Failure) {
	if sp == nil {
		return
	}
	errorType, more := f.attributes()
	sp.end(errorType, more...)
}

// A Call is a request to one of the user's servers.
type Call struct {
	Method   string
	Server   string // as the user names it
	Tool     string // that is called, as the server names it
	Writes   bool   // it may change something
	Protocol string // version of MCP
	Address  string // of a remote server; empty for one over pipes
	Port     int
}

// CallServer begins the Span of a request to a server, which End or EndPrompt ends, if the context is
// that of a Span.
func CallServer(ctx context.Context, c Call) (context.Context, *Span) {
	parent := SpanOf(ctx)
	if parent == nil {
		return ctx, nil
	}
	sp := Span{metric: metricClientOperation, series: ofMethod(c.Method, attrTool, c.Tool, c.Protocol)}
	sp.series = append(sp.series, ofServer(c.Server, c.Address)...)
	more := []attribute.KeyValue{attribute.Bool(attrWrites, c.Writes)}
	if c.Address != "" {
		more = append(more, named(attrServerAddress, c.Address), attribute.Int(attrServerPort, c.Port))
	}
	return parent.signals.begin(ctx, sp, spanName(c.Method, c.Tool), trace.SpanKindClient, more...)
}

func ofServer(name, address string) []attribute.KeyValue {
	transport := pipe
	if address != "" {
		transport = tcp
	}
	return []attribute.KeyValue{named(attrServer, name), attribute.String(attrTransport, transport)}
}

// A Refusal is a request to one of the user's servers that toolcell did not let out.
type Refusal struct {
	Method  string
	Server  string // as the user names it; empty if there is none
	Tool    string // as the server names it; empty for other methods, and for a tool that there is not
	Verdict string // VerdictDeny and so on
	Type    string // the error type, DeniedByPolicy and so on
}

// Refused exports a request that was refused just now and had come at start, if the context is that of a
// Span.
//
// It is a Span as the request's own would be, so that it is found by the same name, but of kind
// internal: the conventions have those of clients begin when a request is sent, and backends draw a line to
// a server for each of them. For the same reason it counts in a metric of its own. It is no event of
// the run's Span: it takes time while the user is asked, and backends list spans that failed, not events.
func Refused(ctx context.Context, start time.Time, r Refusal) {
	parent := SpanOf(ctx)
	if parent == nil {
		return
	}
	sp := Span{start: start, series: append(ofMethod(r.Method, attrTool, r.Tool, ""), attribute.String(attrVerdict, r.Verdict))}
	if r.Server != "" {
		sp.series = append(sp.series, named(attrServer, r.Server))
	}
	s := parent.signals
	_, refused := s.begin(ctx, sp, spanName(r.Method, r.Tool), trace.SpanKindInternal)
	refused.close(r.Type)
	s.refused.Add(context.Background(), 1, metric.WithAttributes(refused.series...))
}

// Prompt names the prompt that a request was about. It is for one that the server has answered:
// until then the name is a text of the code.
func (sp *Span) Prompt(method, name string) {
	if sp == nil {
		return
	}
	sp.otel.SetName(spanName(method, name))
	sp.otel.SetAttributes(named(attrPrompt, name))
}

// Run begins the Span of a run, which EndRun ends. It is part of the request that began it, or
// of nothing if that is nil. ctx is that of the run's own life.
func (s *Signals) Run(ctx context.Context, began *Span, id string) (context.Context, *Span) {
	if s == nil {
		return ctx, nil
	}
	if began != nil {
		began.otel.SetAttributes(attribute.String(attrRunID, id))
		ctx = began.Within(ctx)
	}
	s.active.Add(ctx, 1)
	return s.begin(ctx, Span{metric: metricRun}, spanRun, trace.SpanKindInternal, attribute.String(attrRunID, id))
}

// EndRun ends the Span of a run with its status and the number of its calls.
func (sp *Span) EndRun(status string, failed bool, calls int) {
	if sp == nil {
		return
	}
	sp.signals.active.Add(context.Background(), -1)
	ended := attribute.String(attrRunStatus, status)
	sp.series = append(sp.series, ended)
	errorType := ""
	if failed {
		errorType = status
	}
	sp.end(errorType, ended, attribute.Int(attrRunCalls, calls))
}

// A Cost is what a run took. What is not known is 0.
type Cost struct {
	CPU            time.Duration // of all processors together
	Peak           int64         // bytes of memory, at the time of the most
	Sent, Received int64         // bytes, to and from hosts
}

// Took notes in the Span of a run, which has not ended, what the run took.
func (sp *Span) Took(c Cost) {
	if sp == nil {
		return
	}
	if c.CPU > 0 {
		sp.otel.SetAttributes(attribute.Float64(attrCPUTime, c.CPU.Seconds()))
	}
	for key, bytes := range map[string]int64{attrMemoryPeak: c.Peak, attrSent: c.Sent, attrReceived: c.Received} {
		if bytes > 0 {
			sp.otel.SetAttributes(attribute.Int64(key, bytes))
		}
	}
}

// RunTook counts what a run took that has ended with this status.
func (s *Signals) RunTook(status string, c Cost) {
	if s == nil {
		return
	}
	count := func(metric string, value float64, more ...attribute.KeyValue) {
		if value > 0 {
			s.record(metric, value, append(more, attribute.String(attrRunStatus, status))...)
		}
	}
	count(metricCPUTime, c.CPU.Seconds())
	count(metricMemoryPeak, float64(c.Peak))
	count(metricNetwork, float64(c.Sent), attribute.String(attrDirection, transmit))
	count(metricNetwork, float64(c.Received), attribute.String(attrDirection, receive))
}

// Resumed notes that a request, which is sp, has come back to a run.
func (sp *Span) Resumed(run *Span, id string) {
	if sp == nil || run == nil {
		return
	}
	sp.otel.SetAttributes(attribute.String(attrRunID, id))
	sp.otel.AddLink(trace.Link{SpanContext: run.otel.SpanContext()})
}

// Started exports the start of a sandbox: how it was started, and whether that has failed.
func Started(ctx context.Context, start time.Time, kind string, err error) {
	step(ctx, start, spanStart, metricStart, failure(err), attribute.String(attrStartKind, kind))
}

// Asked exports a question to the user, and what became of it.
func Asked(ctx context.Context, start time.Time, outcome string) {
	step(ctx, start, spanAsk, metricAsk, "", attribute.String(attrAskOutcome, outcome))
}

// Resolved exports that the packages of a script were made ready, or not.
func Resolved(ctx context.Context, start time.Time, err error) {
	step(ctx, start, spanResolve, metricResolve, failure(err))
}

// failure is the type of an error whose text may hold anything.
func failure(err error) string {
	if err != nil {
		return OtherError
	}
	return ""
}

// ClientSession counts a client's connection, which has lasted since start.
func (s *Signals) ClientSession(server, address, protocol string, d time.Duration) {
	if s != nil {
		s.record(metricClientSession, d.Seconds(), append(ofServer(server, address), named(attrProtocol, protocol))...)
	}
}

// ServerSession counts the connection of a client, over a pipe.
func (s *Signals) ServerSession(d time.Duration) {
	if s != nil {
		s.record(metricServerSession, d.Seconds(), attribute.String(attrTransport, pipe))
	}
}
