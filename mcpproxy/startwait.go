package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toolcell/toolcell/internal/deadline"
)

// A StartWait says how a caller waits for servers that are being started.
type StartWait struct {
	// Max is how long a call waits. Then it fails with a SilentError, and the start goes
	// on for later calls. 0 is until the server is ready or has failed.
	Max time.Duration
	// Pauses are how long the caller's deadline may be put off meanwhile; nil is no time.
	Pauses *deadline.Allowance
}

type startWaitKey struct{}

// WithStartWait returns a context in which calls wait for starting servers as w says.
func WithStartWait(ctx context.Context, w StartWait) context.Context {
	return context.WithValue(ctx, startWaitKey{}, w)
}

// startWaitOf returns the StartWait of a caller.
func startWaitOf(ctx context.Context) StartWait {
	w, _ := ctx.Value(startWaitKey{}).(StartWait)
	return w
}

// awaitStart waits for a start that is under way, as long as the caller does.
func (u *upstream) awaitStart(ctx context.Context, start <-chan singleflight.Result) error {
	w := startWaitOf(ctx)
	defer w.Pauses.Wait()()
	var over <-chan time.Time
	if w.Max > 0 {
		over = time.After(w.Max)
	}
	select {
	case done := <-start:
		return done.Err
	case <-over:
		return &SilentError{u.server.Name, u.startedAt(), errStillStarting}
	case <-ctx.Done():
		return &SilentError{u.server.Name, u.startedAt(), context.Cause(ctx)}
	}
}

// A SilentError is the error of a caller that waits no longer for a server that was
// started for it. The start goes on.
type SilentError struct {
	Server string
	Since  time.Time // when it was started
	cause  error
}

// errStillStarting is the cause of a SilentError of a caller that may call again.
var errStillStarting = errors.New("it is still starting")

func (e *SilentError) Error() string {
	if errors.Is(e.cause, errStillStarting) {
		return fmt.Sprintf("server %q is still starting (%d s so far; one that fetches packages first may take minutes): it goes on starting in the background, so call again soon",
			e.Server, int(time.Since(e.Since).Seconds()))
	}
	return fmt.Sprintf("waiting for server %q to start: %s", e.Server, e.cause)
}
func (e *SilentError) Unwrap() error { return e.cause }

func (u *upstream) startedAt() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since
}

// gaveUp returns the error of a caller whose ctx has ended while it waited.
func (u *upstream) gaveUp(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.starting {
		return &SilentError{u.server.Name, u.since, context.Cause(ctx)}
	}
	return context.Cause(ctx)
}
