package elicitation

import (
	"context"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A Clock is the time that a server has for a request. It stands still while the user
// is asked. A nil one does not end.
type Clock struct {
	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when timer was started; it stands still otherwise
	timer  *time.Timer
	paused int
}

// StartClock bounds a request: ctx ends with cause when the limit is over. 0 is no bound.
func StartClock(ctx context.Context, limit time.Duration, cause error) (context.Context, *Clock, context.CancelFunc) {
	if limit <= 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, nil, cancel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, contain.Func("ending a request", func() { cancel(cause) }))
	return ctx, c, func() {
		c.Pause() // for good
		cancel(nil)
	}
}

// Pause stops the clock until Resume is called. Pauses nest.
func (c *Clock) Pause() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
}

// Resume ends a Pause.
func (c *Clock) Resume() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused--; c.paused == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
