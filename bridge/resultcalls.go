package bridge

import (
	"fmt"

	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// addCalls puts the calls of a failed run into its result.
func (r *Result) addCalls(log hostapi.CallLog) {
	r.Calls, r.CallsLeftOut, r.ReadOnlyCalls = log.Calls, log.LeftOut, log.ReadOnly
}

// CallLines describes the outcome of a failed run's calls, one line each; it is
// empty if there were no calls.
func (r *Result) CallLines() []string {
	var out []string
	for _, kind := range []struct {
		outcome hostapi.Outcome
		head    string
	}{
		{hostapi.CallDone, "calls that have taken effect; a retry should not repeat what they changed:"},
		{hostapi.CallUnknown, "calls without an answer, which may have taken effect:"},
	} {
		head := kind.head
		for _, c := range r.Calls {
			if c.Outcome != kind.outcome {
				continue
			}
			if head != "" {
				out, head = append(out, head), ""
			}
			out = append(out, "  "+c.Server+"."+c.Tool+" "+c.Arguments)
		}
	}
	if r.CallsLeftOut > 0 {
		out = append(out, fmt.Sprintf("and %d more such calls", r.CallsLeftOut))
	}
	if r.ReadOnlyCalls > 0 && len(r.Calls) > 0 { // otherwise a retry repeats nothing
		out = append(out, fmt.Sprintf("and %s of read-only tools, which changed nothing", text.Plural(r.ReadOnlyCalls, "call")))
	}
	return out
}

// callRows are the calls with their columns in reading order.
func (r *Result) callRows() []any {
	rows := make([]any, len(r.Calls))
	for i, c := range r.Calls {
		rows[i] = toon.Object{{Key: "server", Value: c.Server}, {Key: "tool", Value: c.Tool}, {Key: "arguments", Value: c.Arguments}, {Key: "outcome", Value: string(c.Outcome)}}
	}
	return rows
}
