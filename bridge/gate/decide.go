package gate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// An Effect is a request as it is decided on.
type Effect struct {
	Facts mcpproxy.Facts
	// Bytes are decided on and shown to the user, in their one form (canonical): the arguments
	// of a tool, or an object with what else is wanted. Args are the part of them that is sent.
	Bytes, Args json.RawMessage

	asked   string   // the name of what is wanted, as the code has it
	reasons []string // to ask the user about just this, whatever the rules say
	planned bool
}

// subject is what the user is asked about, beside the server: the tool, or the method.
func (e Effect) subject() string {
	if e.Facts.Method == mcpproxy.CallTool {
		return e.Facts.Name
	}
	return e.Facts.Method
}

// call is the effect as policies see it. What is no call of a tool has no arguments there.
func (e Effect) call() policy.Call {
	c := policy.Call{Server: policyServer(e.Facts.Server), Identity: e.Facts.Identity(), Reasons: e.reasons, Planned: e.planned}
	if e.Facts.Method != mcpproxy.CallTool {
		return c
	}
	t := e.Facts.Tool
	c.Arguments, c.Changed = e.Bytes, t.Changed()
	c.Tool = policy.Tool{
		Name: t.Name, Alias: t.Alias, Twins: t.Twins(), ReadOnly: t.ReadsOnly, Unaccepted: t.Unaccepted, Acceptable: t.Acceptable, Digest: t.Digest,
	}
	return c
}

// policyServer is a server as policies know it.
func policyServer(s config.Server) policy.Server { return policy.Server{Name: s.Name, Alias: s.Alias} }

// KnownTools are the tools of a server as policies see them, nil if they are not known.
func KnownTools(s config.Server, tools []catalog.Tool) policy.KnownTools {
	known := policy.KnownTools{Server: policyServer(s)}
	for _, t := range tools {
		known.Tools = append(known.Tools, policy.Tool{Name: t.Name, Alias: t.Alias})
	}
	return known
}

// A Verdict is what may become of an effect. The zero value refuses.
type Verdict struct {
	Allowed bool
	Planned bool        // it is kept in the plan, and not sent
	Ask     *policy.Ask // what the user has to be asked first
	Refusal error       // why it is not allowed

	question string // by which the user allowed it earlier, for the rest of the run or for the connection
}

// errUndecided refuses what nothing has allowed.
var errUndecided = errors.New("it was not decided whether this is allowed, so it is not")

// why returns the error of a verdict that does not allow.
func (v Verdict) why() error {
	switch {
	case v.Refusal != nil:
		return v.Refusal
	case v.Ask != nil:
		return v.Ask
	}
	return errUndecided
}

// decide finds the verdict on an effect. It does not ask the user and does not count; it only
// looks whether the limits have room.
// What the user has allowed counts for the same entry, definition, bytes and reasons: of just
// this request, for the rest of the run, or for the connection, unless that was taken back.
func (g *Gate) decide(ctx context.Context, e *Effect, allowed []*policy.Ask) (v Verdict) {
	defer contain.Recover("deciding on a call", func(err error) { v = Verdict{Refusal: err} })
	if err := g.WhyStopped(); err != nil {
		return Verdict{Refusal: err}
	}
	e.reasons, e.planned = g.flow(e.Facts.Server), g.planner.plans(ctx, *e)
	ask, err := g.o.Policy.Check(ctx, e.call())
	switch {
	case err != nil:
		return Verdict{Refusal: err}
	case e.planned:
		return Verdict{Planned: true}
	case ask == nil:
		return Verdict{Allowed: true}
	}
	ask.Tool, ask.Arguments, ask.ReadsOnly = e.subject(), e.Bytes, !e.Facts.Writes()
	for _, earlier := range allowed {
		if earlier.Same(ask) {
			return Verdict{Allowed: true}
		}
	}
	if !ask.Once && g.o.Asker != nil {
		if question := g.o.Asker.Granted(consentCall(ask)); question != "" {
			return Verdict{Allowed: true, question: question}
		}
	}
	return Verdict{Ask: ask}
}
