package gate

import (
	"context"
	"errors"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// exportRefusal exports a request that has ended by an error before anything of it left, if toolcell itself
// is the reason. p is what was last prepared of it, nil if nothing was.
func (g *Gate) exportRefusal(ctx context.Context, start time.Time, r Request, p *mcpproxy.Prepared, err error) {
	defer contain.Recover("exporting a refusal", nil)
	if err == nil || signals.SpanOf(ctx) == nil || p != nil && p.Sent() {
		return
	}
	verdict, why := refusalOf(ctx, err)
	if verdict == "" {
		return
	}
	refused := signals.Refusal{Method: r.Method, Verdict: verdict, Type: why}
	if s, err := g.o.Upstreams.Lookup(r.Server); err == nil {
		refused.Server, refused.Tool = s.Name, g.knownTool(s.Name, r, p)
	}
	signals.Refused(ctx, start, refused)
}

// knownTool returns the name of the tool that a request is for, as its server has it. A name that is
// not known there is a text of the code: then it returns "".
func (g *Gate) knownTool(server string, r Request, p *mcpproxy.Prepared) string {
	if r.Method != mcpproxy.CallTool {
		return ""
	}
	if p != nil {
		return p.Facts().Name
	}
	for _, t := range g.o.Upstreams.KnownTools(server) {
		if r.Name == t.Name || r.Name == t.Alias {
			return t.Name
		}
	}
	return ""
}

// A refusal is an error that no type of its own tells from others, with its word in signals.
type refusal struct {
	error
	why string
}

func refuse(why string, err error) error {
	if err == nil {
		return nil
	}
	return refusal{err, why}
}

// Unwrap implements errors.Unwrap.
func (r refusal) Unwrap() error { return r.error }

// refusalOf returns the verdict on a request that has not left, and the reason, in words of ours: the
// error may hold what the code or a server has said. The verdict is "" if toolcell is not the reason,
// such as for a server that does not start, or a run that is cancelled.
func refusalOf(ctx context.Context, err error) (verdict, why string) {
	denied, isDenied := errors.AsType[*policy.DeniedError](err)
	known, isKnown := errors.AsType[refusal](err)
	_, unasked := errors.AsType[*policy.Ask](err)
	_, missing := errors.AsType[*catalog.MissingError](err)
	switch {
	case isDenied && denied.Limit:
		return signals.VerdictDeny, signals.LimitReached
	case isDenied:
		return signals.VerdictDeny, signals.DeniedByPolicy
	case errors.Is(err, consent.ErrDenied):
		return signals.VerdictDeny, signals.DeniedByUser
	case errors.Is(err, consent.ErrExpired):
		return signals.VerdictAsk, signals.NoAnswer
	case unasked || errors.Is(err, consent.ErrNoUser):
		return signals.VerdictAsk, signals.NoUser
	case errors.Is(err, consent.ErrStopped):
		return signals.VerdictRefused, signals.RunStopped
	case ctx.Err() != nil: // also while arguments were being read
		return "", ""
	case isKnown && known.why == signals.NotGranted:
		return signals.VerdictDeny, known.why
	case isKnown:
		return signals.VerdictRefused, known.why
	case missing:
		return signals.VerdictRefused, signals.UnknownTool
	case errors.Is(err, mcpproxy.ErrChanged):
		return signals.VerdictRefused, signals.ServerChanged
	case errors.Is(err, contain.ErrInternal) || errors.Is(err, errUndecided):
		return signals.VerdictRefused, signals.OtherError
	}
	return "", ""
}
