package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
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
// are not read-only, and those that need the result of an earlier one, or may. That of a real
// run knows only that its code may have results of earlier plans.
//
// The code gets a placeholder for each result, which shows as <result N> wherever it is used.
// Once the code has something of one that does not show it, such as an error that it has
// caught, nothing is read for it any more.
type planner struct {
	dry   bool // the run is a dry one
	order callOrder

	mu     sync.Mutex
	before int // results of earlier plans that the code may still have
	plan   Plan

	derived atomic.Bool // the code has such a thing
}

// decide says that a call of the run will not be planned any more.
func (p *planner) decide(number int) {
	if p.dry {
		p.order.decide(number)
	}
}

// plans reports whether an effect is kept in the plan instead of being sent.
func (p *planner) plans(ctx context.Context, e Effect) bool {
	return p.dry && (e.Facts.Writes() || len(e.Bytes) > 0 && p.needsResult(ctx, e.Bytes))
}

// needsResult reports whether what is asked for has, or may come from, the result of a
// planned call.
func (p *planner) needsResult(ctx context.Context, asked json.RawMessage) bool {
	return p.derived.Load() || p.usesResult(ctx, asked)
}

// plan keeps an effect in the plan, once it is known which earlier ones are planned: the calls
// of one gather come here in any order. It returns the answer that the code gets: a list of the
// call's place in the plan and the shape of its result. That of a server is an object.
func (g *Gate) plan(ctx context.Context, e Effect, number int) (json.RawMessage, error) {
	if _, err := g.o.Policy.Reserve(e.call()); err != nil {
		return nil, err
	}
	place, err := g.planner.place(ctx, number, PlannedCall{e.Facts.Server.Name, e.subject(), plannedArguments(e.Bytes)})
	if err != nil {
		return nil, err
	}
	shape := json.RawMessage("null")
	if e.Facts.Method == mcpproxy.CallTool {
		shape = signature.Shape(e.Facts.Tool.OutputSchema)
	}
	return fmt.Appendf(nil, "[%d,%s]", place, shape), nil
}

// place keeps a planned call, and returns its place in the plan.
func (p *planner) place(ctx context.Context, number int, c PlannedCall) (int, error) {
	if err := p.order.await(ctx, number); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan.Calls) < maxPlannedCalls {
		p.plan.Calls = append(p.plan.Calls, c)
	} else {
		p.plan.LeftOut++
	}
	return p.count(), nil
}

// count is how many calls were planned. The caller holds mu.
func (p *planner) count() int { return len(p.plan.Calls) + p.plan.LeftOut }

// results is how many results of planned calls the code may have, in this run and earlier ones.
func (p *planner) results() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.before, p.count())
}

// plannedArguments bounds the arguments of a planned call.
func plannedArguments(args json.RawMessage) json.RawMessage {
	if len(args) <= maxPlannedArguments {
		return bytes.Clone(args)
	}
	short, _ := json.Marshal(fmt.Sprintf("%s… (%d bytes)", text.Clip(string(args), maxPlannedArguments), len(args))) // strings always encode
	return short
}

// usesResult reports whether JSON has the placeholder of a call that was planned, in this run
// or in an earlier one whose variables the code has. It says so too if ctx ends before that
// is known.
func (p *planner) usesResult(ctx context.Context, raw json.RawMessage) bool {
	count := p.results()
	if count == 0 {
		return false
	}
	used, err := usedResult(ctx, raw, count)
	return used != "" || err != nil || usesCutPlaceholder(ctx, raw)
}

// placeholder matches one, also in another case, and as it is written in addresses, in HTML
// and in JSON.
var placeholder = text.Pattern(`(?i)(?:<|%3c|&lt;|\\u003c)result(?: |%20|\+)([0-9]{1,10})(?:>|%3e|&gt;|\\u003e)`)

// cutPlaceholder matches one that is cut at the end or the beginning of a text: code may cut
// a text that it has written one into.
var cutPlaceholder = text.Pattern(`(?i)<r(?:e(?:s(?:u(?:l(?:t(?: [0-9]{0,10})?)?)?)?)?)?"|"(?:(?:(?:(?:(?:(?:r?e)?s)?u)?l)?t)? )?[0-9]{1,10}>`)

// longestPlaceholder is at least as many bytes as either of them matches.
const longestPlaceholder = 64

// pieces are parts of a text that overlap, so that each placeholder is whole in one of them.
// They end early with ctx.
func pieces(ctx context.Context, text []byte) iter.Seq[[]byte] {
	const size = 64 << 10
	return func(yield func([]byte) bool) {
		for len(text) > 0 && ctx.Err() == nil {
			if !yield(text[:min(size+longestPlaceholder, len(text))]) {
				return
			}
			text = text[min(size, len(text)):]
		}
	}
}

// usedResult returns the first placeholder in JSON of one of the first count planned calls.
func usedResult(ctx context.Context, raw []byte, count int) (string, error) {
	for piece := range pieces(ctx, raw) {
		for _, found := range placeholder().FindAllSubmatch(piece, -1) {
			if n, err := strconv.Atoi(string(found[1])); err == nil && n >= 1 && n <= count {
				return fmt.Sprintf("<result %d>", n), nil
			}
		}
	}
	return "", context.Cause(ctx)
}

// usesCutPlaceholder reports whether JSON has one. It says so too if ctx ends before that is
// known.
func usesCutPlaceholder(ctx context.Context, raw []byte) bool {
	for piece := range pieces(ctx, raw) {
		if cutPlaceholder().Match(piece) {
			return true
		}
	}
	return ctx.Err() != nil
}

// Resume says how many results of planned calls the code of the session may have, before it
// goes on.
func (g *Gate) Resume(planned int) {
	g.planner.mu.Lock()
	defer g.planner.mu.Unlock()
	g.planner.before = planned
}

// checkPlaceholders returns an error if a real run is about to send what stands for a planned
// result of an earlier one.
func (g *Gate) checkPlaceholders(ctx context.Context, r Request) error {
	switch {
	case g.o.Plan && r.Derived:
		g.NoteDerived()
	case g.o.Plan, !r.mayBePlanned():
	case r.Derived:
		return sentPlanned("a variable of the code")
	case g.Planned() > 0:
		return g.findPlaceholder(ctx, r.Raw)
	}
	return nil
}

// findPlaceholder returns an error if JSON has a placeholder of an earlier plan, or may have.
func (g *Gate) findPlaceholder(ctx context.Context, raw json.RawMessage) error {
	used, err := usedResult(ctx, raw, g.Planned())
	switch {
	case used != "":
		return sentPlanned(used)
	case err != nil:
		return err
	case usesCutPlaceholder(ctx, raw):
		return sentPlanned("a text that is cut inside a <result N>")
	}
	return nil
}

// NoteDerived takes note that the code has something of a planned result that does not show
// it, and sends nothing of it.
func (g *Gate) NoteDerived() { g.planner.derived.Store(true) }

func sentPlanned(used string) error {
	return fmt.Errorf("%s stands for the result of a call that was only planned, in an earlier run of this session; nothing was sent: "+
		"make the variables again from real results, or use another session", used)
}

// Settled says that a request of the run will not be planned any more: later ones no longer
// wait for it.
func (g *Gate) Settled(number int) { g.planner.decide(number) }

// Planned returns how many results of planned calls the code of the run may have.
func (g *Gate) Planned() int { return g.planner.results() }

// Plan returns what a dry run would have done.
func (g *Gate) Plan() Plan {
	g.planner.mu.Lock()
	defer g.planner.mu.Unlock()
	return g.planner.plan
}
