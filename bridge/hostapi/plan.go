package hostapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// Bounds on what is kept of planned calls.
const (
	maxPlannedCalls     = 200
	maxPlannedArguments = 2000 // bytes
)

// A PlannedCall is a call that a dry run would have made.
type PlannedCall struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Arguments are the object that would have been sent. Of a long one they are a text:
	// its beginning, and how long it is.
	Arguments json.RawMessage `json:"arguments"`
}

// A Plan is the calls that a dry run would have made, in their order.
type Plan struct {
	Calls   []PlannedCall
	LeftOut int // more such calls
}

// A planner keeps the calls of a dry run that its servers do not get: those of tools that
// are not read-only, and those that need the result of an earlier one. A nil *planner has
// none: the run is real.
//
// The code gets a stand-in for each result, which shows as <result N> wherever it is used.
type planner struct {
	order callOrder
	mu    sync.Mutex
	plan  Plan
}

func newPlanner() *planner { return &planner{order: newCallOrder()} }

// decide says that a call of the run will not be planned any more.
func (p *planner) decide(number int) {
	if p != nil {
		p.order.decide(number)
	}
}

// plans is mcpproxy.CallRequest.Plans.
func (p *planner) plans(t mcpproxy.CheckedTool, args json.RawMessage) bool {
	return !t.ReadsOnly || p.usesResult(args)
}

// add keeps a planned call of the run, once it is known which earlier ones are planned: the
// calls of one gather come here in any order. It returns the answer that the code gets: a
// list of the call's place in the plan and the shape of its result. That of a server is an
// object.
func (p *planner) add(ctx context.Context, number int, c *mcpproxy.Planned) (json.RawMessage, error) {
	if err := p.order.await(ctx, number); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan.Calls) < maxPlannedCalls {
		p.plan.Calls = append(p.plan.Calls, PlannedCall{c.Server, c.Tool.Name, plannedArguments(c.Arguments)})
	} else {
		p.plan.LeftOut++
	}
	return fmt.Appendf(nil, "[%d,%s]", p.count(), signature.Shape(c.Tool.OutputSchema)), nil
}

// count is how many calls were planned. The caller holds mu.
func (p *planner) count() int { return len(p.plan.Calls) + p.plan.LeftOut }

// plannedArguments bounds the arguments of a planned call.
func plannedArguments(args json.RawMessage) json.RawMessage {
	if len(args) <= maxPlannedArguments {
		return bytes.Clone(args)
	}
	short, _ := json.Marshal(fmt.Sprintf("%s… (%d bytes)", text.Clip(string(args), maxPlannedArguments), len(args))) // strings always encode
	return short
}

// usesResult reports whether JSON has the stand-in of a call that was planned.
func (p *planner) usesResult(raw json.RawMessage) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	count := p.count()
	p.mu.Unlock()
	for rest := []byte(raw); ; {
		_, after, found := bytes.Cut(rest, []byte("<result "))
		if !found {
			return false
		}
		number, _, _ := bytes.Cut(after[:min(len(after), len("9999999999>"))], []byte(">"))
		if n, err := strconv.Atoi(string(number)); err == nil && n >= 1 && n <= count {
			return true
		}
		rest = after
	}
}

// Plan returns what a dry run would have done.
func (a *API) Plan() Plan {
	if a.planner == nil {
		return Plan{}
	}
	a.planner.mu.Lock()
	defer a.planner.mu.Unlock()
	return a.planner.plan
}
