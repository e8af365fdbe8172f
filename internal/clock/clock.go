// Package clock bounds work by a time that can stand still, such as while the user is asked.
package clock

import (
	"context"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A Clock is a time that work has. It is safe for concurrent use. A nil one never ends.
type Clock struct {
	mu       sync.Mutex
	timer    *time.Timer
	deadline time.Time
	pauses   int           // that have begun and are not over
	left     time.Duration // to the deadline, when they are over
	stopped  bool
	life     context.Context // ends when the time is up
	up       context.CancelFunc
}

// forever is longer than any person thinks about a question.
const forever = 100 * 365 * 24 * time.Hour

// late is what the functions of a clock do.
const late = "ending what took too long"

// New starts a clock whose time is up in d.
func New(d time.Duration) *Clock {
	c := &Clock{deadline: time.Now().Add(d)}
	c.life, c.up = context.WithCancel(context.Background())
	c.timer = time.AfterFunc(d, contain.Func(late, c.end))
	return c
}

// Bound returns a context that ends with a cause when the time is up in d, and its clock. 0 is
// no bound. cancel also ends the context.
func Bound(ctx context.Context, d time.Duration, cause error) (_ context.Context, c *Clock, cancel context.CancelFunc) {
	if d <= 0 {
		ctx, cancel = context.WithCancel(ctx)
		return ctx, nil, cancel
	}
	ctx, end := context.WithCancelCause(ctx)
	c = New(d)
	c.AfterFunc(func() { end(cause) })
	return ctx, c, func() {
		c.Stop()
		end(nil)
	}
}

// AfterFunc has f called in a goroutine of its own when the time is up, at once if it is. stop
// prevents that, and reports whether it did.
func (c *Clock) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.life, contain.Func(late, f))
}

func (c *Clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.up()
	}
}

// Pause makes the clock stand still until resume is called, which must be called
// once. Several pauses may overlap. It does nothing once the time is up.
func (c *Clock) Pause() (resume func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses == 0 {
		if !c.timer.Stop() {
			return func() {}
		}
		c.left = time.Until(c.deadline)
		c.deadline = time.Now().Add(forever)
	}
	c.pauses++
	return c.resume
}

func (c *Clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses--
	if c.pauses == 0 && !c.stopped {
		c.deadline = time.Now().Add(c.left)
		c.timer.Reset(c.left)
	}
}

// Stop stops the clock for good: nothing is called any more.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

// Up reports whether the time is up.
func (c *Clock) Up() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.deadline)
}
