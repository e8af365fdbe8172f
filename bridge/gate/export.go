package gate

import (
	"context"
	"errors"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/signals"
)

// exportAsk exports a question that was put at start and has this outcome, unless there was no user
// to ask.
func exportAsk(ctx context.Context, start time.Time, err error) {
	if !errors.Is(err, consent.ErrNoUser) {
		signals.Asked(ctx, start, askOutcome(err))
	}
}

// askOutcome returns what became of a question.
func askOutcome(err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, consent.ErrDenied):
		return "denied"
	case errors.Is(err, consent.ErrStopped):
		return "stopped"
	case errors.Is(err, consent.ErrExpired):
		return "expired"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return signals.OtherError
}
