package signals

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

type runKey struct{}

// keyRun is what a line of the log has the ID of a run under.
const keyRun = "run"

// WithRun returns a context whose lines in the log have the ID of a run.
func WithRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, runKey{}, id)
}

// A LogHandler gives lines what they belong to, by their context: run, trace_id and span_id, as far
// as there are such.
type LogHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h LogHandler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	named := false
	r.Attrs(func(a slog.Attr) bool { named = named || a.Key == keyRun; return !named })
	if id, ok := ctx.Value(runKey{}).(string); ok && !named {
		r.AddAttrs(slog.String(keyRun, id))
	}
	if in := trace.SpanContextFromContext(ctx); in.IsValid() {
		r.AddAttrs(slog.String("trace_id", in.TraceID().String()), slog.String("span_id", in.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return LogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h LogHandler) WithGroup(name string) slog.Handler { return LogHandler{h.Handler.WithGroup(name)} }
