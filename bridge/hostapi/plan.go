package hostapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
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
// are not read-only, and those that need the result of an earlier one, or may. A nil *planner
// has none: the run is real.
//
// The code gets a placeholder for each result, which shows as <result N> wherever it is used.
// Once the code has something of one that does not show it, such as an error that it has
// caught, nothing is read for it any more.
type planner struct {
	order  callOrder
	before int // results of earlier plans that the code may still have
	mu     sync.Mutex
	plan   Plan

	derived atomic.Bool // the code has such a thing
}

func newPlanner(before int) *planner { return &planner{order: newCallOrder(), before: before} }

// decide says that a call of the run will not be planned any more.
func (p *planner) decide(number int) {
	if p != nil {
		p.order.decide(number)
	}
}

// plans is mcpproxy.CallRequest.Plans.
func (p *planner) plans(ctx context.Context, t mcpproxy.CheckedTool, args json.RawMessage) bool {
	return !t.ReadsOnly || p.needsResult(ctx, args)
}

// needsResult reports whether what is asked for has, or may come from, the result of a
// planned call.
func (p *planner) needsResult(ctx context.Context, asked json.RawMessage) bool {
	return p != nil && (p.derived.Load() || p.usesResult(ctx, asked))
}

// add keeps a planned call of the run, once it is known which earlier ones are planned: the
// calls of one gather come here in any order. It returns the answer that the code gets: a
// list of the call's place in the plan and the shape of its result. That of a server is an
// object.
func (p *planner) add(ctx context.Context, number int, c *mcpproxy.Planned) (json.RawMessage, error) {
	place, err := p.place(ctx, number, c.Server, c.Tool.Name, c.Arguments)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "[%d,%s]", place, signature.Shape(c.Tool.OutputSchema)), nil
}

// place keeps a planned call, and returns its place in the plan.
func (p *planner) place(ctx context.Context, number int, server, tool string, args json.RawMessage) (int, error) {
	if err := p.order.await(ctx, number); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan.Calls) < maxPlannedCalls {
		p.plan.Calls = append(p.plan.Calls, PlannedCall{server, tool, plannedArguments(args)})
	} else {
		p.plan.LeftOut++
	}
	return p.count(), nil
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

// usesResult reports whether JSON has the stand-in of a call that was planned, in this run
// or in an earlier one whose variables the code has. It says so too if ctx ends before that
// is known.
func (p *planner) usesResult(ctx context.Context, raw json.RawMessage) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	count := max(p.before, p.count())
	p.mu.Unlock()
	if count == 0 {
		return false
	}
	used, err := usedResult(ctx, raw, count)
	return used != "" || err != nil || usesCutStandIn(ctx, raw)
}

// standIn finds stand-ins, also in another case, and as they are written in addresses, in
// HTML and in JSON.
var standIn = regexp.MustCompile(`(?i)(?:<|%3c|&lt;|\\u003c)result(?: |%20|\+)([0-9]{1,10})(?:>|%3e|&gt;|\\u003e)`)

// cutStandIn finds those that are cut at the end or the beginning of a text: code may cut a
// text that it has written one into.
var cutStandIn = regexp.MustCompile(`(?i)<r(?:e(?:s(?:u(?:l(?:t(?: [0-9]{0,10})?)?)?)?)?)?"|"(?:(?:(?:(?:(?:(?:r?e)?s)?u)?l)?t)? )?[0-9]{1,10}>`)

// longestStandIn is at least as many bytes as either of them matches.
const longestStandIn = 64

// pieces are parts of a text that overlap, so that each stand-in is whole in one of them.
// They end early with ctx.
func pieces(ctx context.Context, text []byte) iter.Seq[[]byte] {
	const size = 64 << 10
	return func(yield func([]byte) bool) {
		for len(text) > 0 && ctx.Err() == nil {
			if !yield(text[:min(size+longestStandIn, len(text))]) {
				return
			}
			text = text[min(size, len(text)):]
		}
	}
}

// usedResult returns the first stand-in in JSON of one of the first count planned calls.
func usedResult(ctx context.Context, raw []byte, count int) (string, error) {
	for piece := range pieces(ctx, raw) {
		for _, found := range standIn.FindAllSubmatch(piece, -1) {
			if n, err := strconv.Atoi(string(found[1])); err == nil && n >= 1 && n <= count {
				return fmt.Sprintf("<result %d>", n), nil
			}
		}
	}
	return "", context.Cause(ctx)
}

// usesCutStandIn reports whether JSON has one. It says so too if ctx ends before that is
// known.
func usesCutStandIn(ctx context.Context, raw []byte) bool {
	for piece := range pieces(ctx, raw) {
		if cutStandIn.Match(piece) {
			return true
		}
	}
	return ctx.Err() != nil
}

// checkPlanned returns an error if a real run sends what stands for a planned result.
func (a *API) checkPlanned(ctx context.Context, method string, raw json.RawMessage) error {
	if a.planner != nil || a.plannedBefore == 0 || !mayBePlanned(method) {
		return nil
	}
	used, err := usedResult(ctx, raw, a.plannedBefore)
	if used != "" {
		return sentPlanned(used)
	}
	return err
}

// mayBePlanned reports whether a dry run plans some requests of this method.
func mayBePlanned(method string) bool {
	return method == "call_tool" || method == "read_resource" || method == "get_prompt"
}

// noteDerived takes note that the code has something of a planned result that does not show it.
// The error is that of checkPlanned.
func (a *API) noteDerived(method string) error {
	switch {
	case a.planner != nil:
		a.planner.derived.Store(true)
	case mayBePlanned(method):
		return sentPlanned("a variable of the code")
	}
	return nil
}

func sentPlanned(used string) error {
	return &runner.CallError{Message: fmt.Sprintf("%s stands for the result of a call that was only planned, in an earlier run of this session; nothing was sent: "+
		"make the variables again from real results, or use another session", used)}
}

// Planned returns how many results of planned calls the code of the run may have.
func (a *API) Planned() int {
	if a.planner == nil {
		return a.plannedBefore
	}
	a.planner.mu.Lock()
	defer a.planner.mu.Unlock()
	return max(a.plannedBefore, a.planner.count())
}

// planRead plans that something other than a tool is read: what is asked for has the
// result of a planned call. The answer is as that of planner.add.
func (a *API) planRead(ctx context.Context, number int, server config.Server, what string, args json.RawMessage) (json.RawMessage, error) {
	if err := a.policy.Authorize(ctx, policy.Call{Server: policyNames(server), Planned: true}); err != nil {
		return nil, err
	}
	place, err := a.planner.place(ctx, number, server.Name, what, args)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "[%d,null]", place), nil
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
