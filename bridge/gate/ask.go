package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// ask asks the user, or the policy if no user can be asked. recorded is the number of the call on
// record, and number its place in the code. e is the effect of which the user is told; nil tells
// nothing of it.
func (g *Gate) ask(ctx context.Context, ask *policy.Ask, e *Effect, recorded, number int, arrived func()) error {
	if g.o.Asker == nil {
		return ask
	}
	c := consentCall(ask)
	c.Number, c.Recorded = number, recorded
	if e != nil {
		c.Where, c.Effect, c.Writes, c.Description = e.Facts.Unusual(), e.words(), e.Facts.Writes(), e.Facts.Tool.Description
	}
	start := time.Now()
	err := g.o.Asker.Ask(ctx, c, arrived)
	exportAsk(ctx, start, err)
	switch {
	case errors.Is(err, consent.ErrNoUser) && g.o.Policy.AllowedUnasked(policy.Server{Name: ask.Server, Alias: ask.Alias}, policy.Tool{Name: ask.Tool}):
		return nil
	case errors.Is(err, consent.ErrNoUser):
		return fmt.Errorf("%w: %w", err, ask)
	case errors.Is(err, consent.ErrDenied):
		g.denied.Store(true)
	case err == nil:
		g.acceptHint(ctx, ask)
	}
	return err
}

// acceptHint keeps that the user takes a server's word that a tool only reads. If it cannot
// be kept, the user is asked about the next call as well.
func (g *Gate) acceptHint(ctx context.Context, ask *policy.Ask) {
	if ask.Hint == "" || !g.o.Asker.Believed(consentCall(ask)) {
		return
	}
	if err := g.o.Upstreams.AcceptHint(ask.Server, ask.Tool, ask.Hint); err != nil {
		g.o.Log.WarnContext(ctx, "keeping that a tool only reads", "server", ask.Server, "tool", ask.Tool, "err", err)
		return
	}
	if g.notePin("accepted", ask.Server, ask.Tool, ask.Hint) { // calls of one question are told one by one
		_ = g.o.Record.Append(record.Pin{Server: ask.Server, Tool: ask.Tool, Change: "accepted", Now: ask.Hint, By: record.ByQuestion})
	}
}

// consentCall is what the user is asked.
func consentCall(ask *policy.Ask) consent.Call {
	return consent.Call{
		Server: ask.Server, Tool: ask.Tool, Arguments: ask.Arguments, Reasons: ask.Reasons, Once: ask.Once,
		Unpinned: ask.Unpinned, ReadsOnly: ask.ReadsOnly, Identity: ask.Identity, Hint: ask.Hint,
	}
}

// Grant asks the user, before code starts, for what it is to have: subject names that, and
// reasons say why the policy has the user asked. Once private data was read, what others may
// learn by it (leak, such as "what is sent to these hosts gets to others") is a reason too.
// Nothing is asked without a reason.
func (g *Gate) Grant(ctx context.Context, subject string, reasons []string, leak string) (err error) {
	if err := g.WhyStopped(); err != nil {
		return err
	}
	if reason := g.o.Taint.Reason(); reason != "" && leak != "" {
		reasons = append(slices.Clip(reasons), reason+"; "+leak)
	}
	if len(reasons) == 0 {
		g.journalGrant(subject, nil, nil)
		return nil
	}
	defer func() { g.journalGrant(subject, reasons, err) }()
	err = consent.ErrNoUser
	if g.o.Asker != nil {
		start := time.Now()
		err = g.o.Asker.AskBefore(ctx, subject, reasons)
		exportAsk(ctx, start, err)
	}
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, consent.ErrNoUser):
		return fmt.Errorf("%s: %w", subject, err)
	case g.o.Asker != nil && g.o.Policy.AllowedUnasked(policy.Server{}, policy.Tool{}):
		return nil
	}
	return fmt.Errorf("%s: %w: %s", subject, err, strings.Join(reasons, "; "))
}

// AskSaved asks the user whether code may have the source of a saved tool, which may hold
// private data, in a run that can reach hosts.
func (g *Gate) AskSaved(ctx context.Context, tool string, private []string) error {
	if err := g.WhyStopped(); err != nil || len(private) == 0 || len(g.o.Hosts) == 0 {
		return err
	}
	err := g.ask(ctx, &policy.Ask{
		Server: SavedServer, Alias: SavedServer, Tool: tool, Once: true,
		Reasons: []string{fmt.Sprintf("this run can reach %s, and the tool was saved after private data was read, from %s", g.reached(), strings.Join(private, ", "))},
	}, nil, 0, 0, func() {})
	return cmp.Or(err, g.WhyStopped()) // meanwhile
}

// SavedServer is the name under which saved tools are listed, and of their module.
const SavedServer = "user_tools"
