package bridge

import (
	"fmt"

	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// addPlan puts the calls that a dry run would have made into its result.
func (r *Result) addPlan(p hostapi.Plan) {
	r.Plan, r.PlanLeftOut = append([]hostapi.PlannedCall{}, p.Calls...), p.LeftOut
}

// PlanLines lists the calls that a dry run would have made, one line each. It is empty
// if it was none.
func (r *Result) PlanLines() []string {
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

// planRows are the planned calls with their columns in reading order.
func (r *Result) planRows() []any {
	rows := make([]any, len(r.Plan))
	for i, c := range r.Plan {
		rows[i] = toon.Object{{Key: "server", Value: c.Server}, {Key: "tool", Value: c.Tool}, {Key: "arguments", Value: string(c.Arguments)}}
	}
	return rows
}
