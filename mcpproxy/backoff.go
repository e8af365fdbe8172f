package mcpproxy

import (
	"context"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	firstPause = 250 * time.Millisecond
	longPause  = time.Minute
	// shortPause is what a call waits for a server to be started again. With
	// a longer one it fails at once, since a script has something better to do.
	shortPause = time.Second
	// livedWell is how long a server has to run for its crash to count as its
	// first.
	livedWell = 30 * time.Second
)

// backoff spaces out the starts of a server that keeps failing.
type backoff struct {
	failures int
	until    time.Time
}

// failed notes that the server could not be started (lived is 0) or ended by
// itself.
func (b *backoff) failed(now time.Time, lived time.Duration) {
	if lived >= livedWell {
		b.failures = 0
	}
	pause := longPause
	if b.failures < 8 { // 250 ms << 8 is more than a minute
		pause = min(pause, firstPause<<b.failures)
	}
	b.failures++
	b.until = now.Add(pause)
}

// pause is how long no start may be made yet.
func (b *backoff) pause(now time.Time) time.Duration { return b.until.Sub(now) }

// waitBackoff waits until the server may be started again, if that is soon.
func waitBackoff(ctx context.Context, u *upstream, pause time.Duration, failure error) error {
	if pause > shortPause {
		return fmt.Errorf("server %q failed and is not started again before %v have passed: %w",
			u.server.Name, max(pause.Round(time.Second), time.Second), transport.UnwrapStart(failure))
	}
	select {
	case <-time.After(pause):
		return nil
	case <-u.proxy.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for server %q to be started again: %w", u.server.Name, context.Cause(ctx))
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
