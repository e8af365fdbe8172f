package signals

import (
	"context"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolcell/toolcell/internal/text"
)

// A Span is something that is under way. It has to be ended once. A nil Span is none.
type Span struct {
	signals *Signals
	otel    trace.Span
	baggage baggage.Baggage // of the client, to be handed on
	start   time.Time

	// What it counts in when it has ended; series are the attributes that do not make too many.
	metric string
	series []attribute.KeyValue
}

type spanKey struct{}

// SpanOf returns the Span that a context is of, nil if there is none.
func SpanOf(ctx context.Context) *Span {
	sp, _ := ctx.Value(spanKey{}).(*Span)
	return sp
}

// In returns a context for work that is no part of another Span.
func (s *Signals) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{signals: s, otel: trace.SpanFromContext(ctx)})
}

// Within returns a context for work that is part of a Span, but does not end with the context that
// the Span began in. It returns ctx if sp is nil.
func (sp *Span) Within(ctx context.Context) context.Context {
	if sp == nil {
		return ctx
	}
	ctx = baggage.ContextWithBaggage(trace.ContextWithSpan(ctx, sp.otel), sp.baggage)
	return context.WithValue(ctx, spanKey{}, sp)
}

// begin begins a Span, as part of the one that ctx is of.
func (s *Signals) begin(ctx context.Context, sp Span, name string, kind trace.SpanKind, more ...attribute.KeyValue) (context.Context, *Span) {
	sp.signals, sp.baggage = s, baggage.FromContext(ctx)
	if sp.start.IsZero() {
		sp.start = time.Now()
	}
	ctx, sp.otel = s.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(sp.start), trace.WithAttributes(sp.series...), trace.WithAttributes(more...))
	return context.WithValue(ctx, spanKey{}, &sp), &sp
}

// end ends the Span. errorType is empty if nothing has failed.
func (sp *Span) end(errorType string, more ...attribute.KeyValue) {
	sp.close(errorType, more...)
	sp.signals.record(sp.metric, time.Since(sp.start).Seconds(), sp.series...)
}

// close ends the Span without its metric.
func (sp *Span) close(errorType string, more ...attribute.KeyValue) {
	if errorType != "" {
		failed := attribute.String(attrErrorType, errorType)
		sp.otel.SetStatus(codes.Error, "")
		sp.otel.SetAttributes(failed)
		sp.series = append(sp.series, attribute.String(attrErrorType, bounded(errorType)))
	}
	sp.otel.SetAttributes(more...)
	sp.otel.End()
}

// step exports something that began at start, is part of what ctx is of, and has ended.
func step(ctx context.Context, start time.Time, name, metric, errorType string, attrs ...attribute.KeyValue) {
	parent := SpanOf(ctx)
	if parent == nil {
		return
	}
	_, sp := parent.signals.begin(ctx, Span{start: start, metric: metric, series: attrs}, name, trace.SpanKindInternal)
	sp.end(errorType)
}

func (s *Signals) record(metricName string, value float64, attrs ...attribute.KeyValue) {
	s.histograms[metricName].Record(context.Background(), value, metric.WithAttributes(attrs...))
}

// maxName bounds a name that comes from a server or a client, in bytes.
const maxName = 128

// named returns an attribute with a name from a server or a client.
func named(key, name string) attribute.KeyValue {
	return attribute.String(key, text.Printable(name, maxName))
}

// knownCodes are those of JSON-RPC and MCP. Servers can make up others.
var knownCodes = []string{"-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32042"}

// bounded returns an error type as metrics have it: a series for each code that a server makes up
// would leave no room for others.
func bounded(errorType string) string {
	if _, err := strconv.Atoi(errorType); err == nil && !slices.Contains(knownCodes, errorType) && !httpStatus().MatchString(errorType) {
		return OtherError
	}
	return errorType
}

var httpStatus = text.Pattern(`^[45][0-9][0-9]$`)

// The keys of a request's _meta that say what it is part of, as W3C has them.
const (
	metaParent  = "traceparent"
	metaState   = "tracestate"
	metaBaggage = "baggage"

	maxContext = 8 << 10 // bytes of each; W3C asks for no more
)

// withRemote returns a context for what the _meta of a client's request says that it is part of.
// What cannot be read there does not count.
func withRemote(ctx context.Context, meta map[string]any) context.Context {
	value := func(key string) string {
		if text, ok := meta[key].(string); ok && len(text) <= maxContext {
			return text
		}
		return ""
	}
	// propagation.Baggage would hand its errors, which quote the client, to the log.
	if b, err := baggage.Parse(value(metaBaggage)); err == nil {
		ctx = baggage.ContextWithBaggage(ctx, b)
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{metaParent: value(metaParent), metaState: value(metaState)})
}

// Meta returns what the _meta of a request to a server has, so that the server's spans are part of
// the same trace; nil if no traces are exported.
func Meta(ctx context.Context) map[string]any {
	sp := SpanOf(ctx)
	if sp == nil || !sp.signals.traced {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if b := baggage.FromContext(ctx).String(); b != "" {
		carrier[metaBaggage] = b
	}
	meta := make(map[string]any, len(carrier))
	for key, text := range carrier {
		meta[key] = text
	}
	return meta
}
