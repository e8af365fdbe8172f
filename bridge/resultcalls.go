package bridge

import (
	"fmt"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/text"
)

// CallLines describes the outcome of a failed run's calls, one line each; it is
// empty if there were no calls.
func CallLines(r *run.Result) []string {
	var out []string
	for _, kind := range []struct {
		outcome gate.Outcome
		head    string
	}{
		{gate.CallDone, "calls that have taken effect; a retry should not repeat what they changed:"},
		{gate.CallUnknown, "calls without an answer, which may have taken effect:"},
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

// PlanLines lists the calls that a dry run would have made, one line each. It is empty
// if it was none.
func PlanLines(r *run.Result) []string {
	switch {
	case r.Plan == nil:
		return nil
	case len(r.Plan) == 0:
		return []string{"plan: the code made no call that may change something"}
	}
	out := []string{"plan, none of it was done:"}
	for i, c := range r.Plan {
		out = append(out, fmt.Sprintf("%d. %s.%s %s", i+1, c.Server, text.Printable(c.Tool, 200), c.Arguments))
	}
	if r.PlanLeftOut > 0 {
		out = append(out, fmt.Sprintf("and %s", text.Plural(r.PlanLeftOut, "more call")))
	}
	return out
}
