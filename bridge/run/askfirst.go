package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
)

// askFirst asks the user, before the code starts, for the hosts and packages that the
// policy has them asked about.
func (r *Run) askFirst(ctx context.Context) error {
	if r.egress != nil {
		r.markFolder()
		_, hosts := splitTargets(r.req.Servers)
		const leak = "what is sent to these hosts gets to others"
		if err := r.gate.Grant(ctx, "network access to "+strings.Join(hosts, ", "), r.egress.Ask, leak); err != nil {
			return notGranted(ctx, err)
		}
	}
	defer r.markFolder() // the header with the packages was written before the code could read
	if r.needs == nil || len(r.needs.Packages) == 0 {
		return nil
	}
	// The index learns the names that code asks for, and which files: code can spell what it
	// has read in them.
	leak := ""
	if here := r.o.PackagesHere; r.gate.HasRead() && !r.needs.listed() && (here == nil || !here(ctx, *r.needs)) {
		leak = fmt.Sprintf("what packages are asked for gets to %s", r.needs.Grant.Index)
	}
	return notGranted(ctx, r.gate.Grant(ctx, "the packages "+strings.Join(r.needs.requirements(), ", "), r.needs.Grant.Ask, leak))
}

// refuseFirst is the result of a run whose code does not start, for which its session is not
// touched.
func (r *Run) refuseFirst(err error) *Result {
	res := r.fail(err)
	if r.session.isAlive() {
		res.Session = sessionContinued
		res.Notes = append(res.Notes, keptNote("the code did not start", r.session.name))
	}
	return res
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
