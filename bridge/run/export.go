package run

import (
	"context"
	"time"

	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/oci"
)

// ofSession is how a run has its sandbox that goes on in a session.
const ofSession = "session"

// export begins the Span of the run, and returns what ends it.
func (r *Run) export(ctx context.Context) (_ context.Context, end func(*Result)) {
	ctx, span := r.runs.o.Signals.Run(ctx, r.req.Span, r.ID)
	r.span.Store(span)
	return signals.WithRun(ctx, r.ID), func(res *Result) {
		if span == nil {
			return
		}
		calls := 0
		if r.gate != nil {
			calls, _, _ = r.gate.Past()
		}
		span.EndRun(res.Status, res.IsError(), calls)
	}
}

// CameBy notes that the request of a client, which ctx is of, waits for the run. If another one
// began it, their Spans are linked.
func (r *Run) CameBy(ctx context.Context) {
	if span := signals.SpanOf(ctx); span != r.req.Span {
		span.Resumed(r.span.Load(), r.ID)
	}
}

// exported returns sandboxes whose starts are part of the run's Span.
func (r *Run) exported(sandboxes Sandboxes) Sandboxes {
	span := r.span.Load()
	if span == nil {
		return sandboxes
	}
	return exportedSandboxes{sandboxes, span}
}

type exportedSandboxes struct {
	Sandboxes
	span *signals.Span
}

// Start implements Sandboxes.
func (s exportedSandboxes) Start(ctx context.Context, p oci.Process) (Sandbox, error) {
	start := time.Now()
	sb, err := s.Sandboxes.Start(ctx, p)
	kind := oci.Cold
	if err == nil {
		kind = sb.Origin()
	}
	signals.Started(s.span.Within(ctx), start, kind, err)
	return sb, err
}
