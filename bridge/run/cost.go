package run

import (
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/oci/limits"
)

// counts reports whether anything wants to know what runs take.
func (r *Run) counts() bool { return r.record != nil || r.runs.o.Signals != nil }

// noteUsage notes what the run of a session took of its sandbox, which the next one goes on with.
func (r *Run) noteUsage() {
	if in := r.python; r.counts() && r.session.name != "" && in.sandbox != nil {
		now := in.sandbox.Usage()
		r.used = limits.Usage{CPU: now.CPU - in.used.CPU, Peak: now.Peak}
		in.used = now
	}
}

// noteCost records and exports what the run took, as far as it is known. What a sandbox took that ends with
// the run is known after the answer, and too late for the Span of the run.
func (r *Run) noteCost(res *Result) {
	if !r.counts() {
		return
	}
	var network record.RunCost
	for _, u := range res.Network {
		network.Sent += u.BytesSent
		network.Received += u.BytesReceived
	}
	status, span := res.Status, r.span.Load()
	if in := r.python; in != nil && in.sandbox != nil && r.session.name == "" {
		span.Took(exportedCost(network))
		r.runs.background.Go(contain.Func("counting what a run took", func() {
			r.count(status, withUsage(network, in.sandbox.Usage()))
		}))
		return
	}
	cost := withUsage(network, r.used)
	span.Took(exportedCost(cost))
	r.count(status, cost)
}

// count records what the run took, and counts it in metrics.
func (r *Run) count(status string, c record.RunCost) {
	if c != (record.RunCost{}) {
		_ = r.record.Append(c)
	}
	r.runs.o.Signals.RunTook(status, exportedCost(c))
}

func withUsage(c record.RunCost, used limits.Usage) record.RunCost {
	c.CPU, c.Peak = used.CPU.Microseconds(), used.Peak
	return c
}

func exportedCost(c record.RunCost) signals.Cost {
	return signals.Cost{CPU: time.Duration(c.CPU) * time.Microsecond, Peak: c.Peak, Sent: c.Sent, Received: c.Received}
}
