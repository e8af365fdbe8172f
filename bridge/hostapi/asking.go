package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// An Asker asks the user whether calls may be made. *consent.Run is one.
type Asker interface {
	// Approach says that a call is on its way, which may have to be asked; more that
	// others may follow at once.
	Approach(more bool) (arrived func())
	Ask(ctx context.Context, c consent.Call, arrived func()) error
	// AskForm asks the user what a server wants to know.
	AskForm(ctx context.Context, f consent.Form) (consent.Answer, error)
	// Granted reports whether the tool of a call was allowed for the rest of the run, for all
	// its reasons.
	Granted(c consent.Call) bool
	// Believed reports whether the user accepted with a call that its tool only reads.
	Believed(c consent.Call) bool
}

// approach is Asker.Approach, if there is one.
func (a *API) approach(more bool) (arrived func()) {
	if a.asker == nil {
		return func() {}
	}
	return a.asker.Approach(more)
}

// callAllowed makes a call, once the user has allowed it if the policy has them asked. In
// a dry run it may only plan it.
func (a *API) callAllowed(ctx context.Context, server config.Server, r mcpproxy.CallRequest, number int, arrived func()) (json.RawMessage, error) {
	if a.asks() {
		r.Elicit, r.Elicits = a.elicit, a.elicits
	}
	r.Check = func(s config.Server, t catalog.Tool, args json.RawMessage) ([]string, error) {
		if err := a.whyStopped(); err != nil {
			return nil, err
		}
		return a.flow.check(s, t, args)
	}
	if a.planner != nil {
		r.Plans = a.planner.plans
	}
	r.Sent = func(t mcpproxy.CheckedTool) {
		arrived()
		a.planner.decide(number)
		a.flow.sent(server, t.Name)
	}
	var allowed []*policy.Ask
	r.Allowed = func(ask *policy.Ask) bool {
		if !ask.Once && !namedAsRead(ask.Tool) && a.asker != nil && a.asker.Granted(consentCall(ask)) {
			return true
		}
		for _, earlier := range allowed {
			if earlier.Same(ask) {
				return true
			}
		}
		return false
	}
	for {
		a.tellElicits()
		result, err := a.calls.call(ctx, a.upstreams, r)
		var planned *mcpproxy.Planned
		if errors.As(err, &planned) && a.planner != nil {
			arrived()
			return a.planner.add(ctx, number, planned)
		}
		var ask *policy.Ask
		if !errors.As(err, &ask) || a.asker == nil {
			return result, err
		}
		shown := *ask
		shown.Once = ask.Once || namedAsRead(ask.Tool)
		if err := a.ask(ctx, server, &shown, number, arrived); err != nil {
			return nil, err
		}
		allowed = append(allowed, ask)
		a.acceptHint(ask)
	}
}

// acceptHint keeps that the user takes a server's word that a tool only reads. If it cannot
// be kept, the user is asked about the next call as well.
func (a *API) acceptHint(ask *policy.Ask) {
	if ask.Hint == "" || !a.asker.Believed(consentCall(ask)) {
		return
	}
	if err := a.upstreams.AcceptHint(ask.Server, ask.Tool, ask.Hint); err != nil {
		a.log.Warn("keeping that a tool only reads", "server", ask.Server, "tool", ask.Tool, "err", err)
	}
}

// consentCall is what the user is asked.
func consentCall(ask *policy.Ask) consent.Call {
	return consent.Call{
		Server: ask.Server, Tool: ask.Tool, Arguments: ask.Arguments, Reasons: ask.Reasons, Once: ask.Once,
		Identity: ask.Identity, Hint: ask.Hint,
	}
}

// namedAsRead reports whether a tool is called as a request is that reads something else.
// What is allowed of the one for the rest of the run must not be allowed of the other.
func namedAsRead(tool string) bool {
	switch tool {
	case "resources/list", "resources/templates/list", "prompts/list", "resources/read", "prompts/get":
		return true
	}
	return false
}

// authorizeRead checks whether something other than tools of a server may be read, and
// asks the user about it if the policy says so. what is shown to the user.
// Once the user was asked, the returned context is of the server's entry as it was then.
func (a *API) authorizeRead(ctx context.Context, number int, server config.Server, what string, arguments json.RawMessage) (context.Context, error) {
	for {
		c := policy.Call{Server: policyNames(server), Identity: server.Fingerprint(), Reasons: a.flow.reasons(server)}
		err := a.policy.Authorize(ctx, c)
		var ask *policy.Ask
		if errors.As(err, &ask) && a.asker != nil {
			shown := *ask
			shown.Tool, shown.Arguments = what, arguments
			if ask.Once || !a.asker.Granted(consentCall(&shown)) {
				if err := a.ask(ctx, server, &shown, number, func() {}); err != nil {
					return nil, err
				}
			}
			var now config.Server
			if now, err = a.upstreams.Lookup(server.Name); err != nil {
				return nil, err
			}
			if now.Fingerprint() != c.Identity { // the user has not seen this one
				server = now
				continue
			}
			c.Allowed = ask.Same
			err = a.policy.Authorize(ctx, c)
			ctx = mcpproxy.OfEntry(ctx, c.Identity)
		}
		if err == nil {
			err = a.whyStopped()
		}
		if err != nil {
			return nil, err
		}
		a.flow.sent(server, what)
		return ctx, nil
	}
}

// ask asks the user, or the policy if no user can be asked.
func (a *API) ask(ctx context.Context, server config.Server, ask *policy.Ask, number int, arrived func()) error {
	c := consentCall(ask)
	c.Number = number
	err := a.asker.Ask(ctx, c, arrived)
	if errors.Is(err, consent.ErrNoUser) {
		if a.policy.AllowedUnasked(policyNames(server), policy.Tool{Name: ask.Tool}) {
			return nil
		}
		return fmt.Errorf("%w: %w", err, ask)
	}
	return err
}
