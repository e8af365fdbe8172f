package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
)

// askFirst asks the user, before the code starts, for the hosts and packages that the
// policy has them asked about.
func (p plan) askFirst(ctx context.Context, g *gate.Gate, req Request, here func(context.Context, Needs) bool) error {
	if p.network != nil {
		_, hosts := splitTargets(req.Servers)
		const leak = "what is sent to these hosts gets to others"
		if err := g.Grant(ctx, "network access to "+strings.Join(hosts, ", "), p.network.Ask, leak); err != nil {
			return notGranted(ctx, err)
		}
	}
	if p.needs == nil || len(p.needs.Packages) == 0 {
		return nil
	}
	// The index learns the names that code asks for, and which files: code can spell what it
	// has read in them.
	leak := ""
	if g.HasRead() && !p.needs.listed() && (here == nil || !here(ctx, *p.needs)) {
		leak = fmt.Sprintf("what packages are asked for gets to %s", p.needs.Grant.Index)
	}
	return notGranted(ctx, g.Grant(ctx, "the packages "+strings.Join(p.needs.requirements(), ", "), p.needs.Grant.Ask, leak))
}

// notGranted gives the error of Gate.Grant the status of the run.
func notGranted(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, consent.ErrNoUser):
		return withStatus(StatusValidation, err)
	case err != nil && context.Cause(ctx) != nil && !stoppedByUser(context.Cause(ctx)):
		return withStatus(StatusCancelled, errors.New("the call was cancelled while the user was asked"))
	}
	return withStatus(StatusCancelled, err)
}
