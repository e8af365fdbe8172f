package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// askFirst asks the user, before the code starts, for the hosts and packages that the
// policy has them asked about.
func (p plan) askFirst(ctx context.Context, asker *consent.Run, req Request, here func(context.Context, Needs) bool) error {
	if p.network != nil {
		_, hosts := splitTargets(req.Servers)
		reasons := slices.Clone(p.network.Ask)
		if reason := asker.Marks().Reason(); reason != "" {
			reasons = append(reasons, reason+"; what is sent to these hosts gets to others")
		}
		if err := p.askFor(ctx, asker, "network access to "+strings.Join(hosts, ", "), reasons); err != nil {
			return err
		}
	}
	if p.needs == nil || len(p.needs.Packages) == 0 {
		return nil
	}
	reasons := slices.Clone(p.needs.Grant.Ask)
	// The index learns the names that code asks for, and which files: code can spell what it
	// has read in them.
	if reason := asker.Marks().Reason(); reason != "" && !p.needs.listed() && (here == nil || !here(ctx, *p.needs)) {
		reasons = append(reasons, fmt.Sprintf("%s; what packages are asked for gets to %s", reason, p.needs.Grant.Index))
	}
	return p.askFor(ctx, asker, "the packages "+strings.Join(p.needs.requirements(), ", "), reasons)
}

func (p plan) askFor(ctx context.Context, asker *consent.Run, what string, reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	err := asker.AskBefore(ctx, what, reasons)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, consent.ErrNoUser):
		if p.policy.AllowedUnasked(policy.Server{}, policy.Tool{}) {
			return nil
		}
		return withStatus(StatusValidation, fmt.Errorf("%s: %w: %s", what, err, strings.Join(reasons, "; ")))
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), consent.ErrStopped) && !errors.Is(context.Cause(ctx), consent.ErrExpired):
		return withStatus(StatusCancelled, errors.New("the call was cancelled while the user was asked"))
	}
	return withStatus(StatusCancelled, fmt.Errorf("%s: %w", what, err))
}
