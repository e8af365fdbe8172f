package runner

import (
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A Clock calls a function when a time is up. It can stand still meanwhile. It is
// safe for concurrent use.
type Clock struct {
	mu       sync.Mutex
	timer    *time.Timer
	deadline time.Time
	pauses   int           // that have begun and are not over
	left     time.Duration // to the deadline, when they are over
	stopped  bool
}

// forever is longer than any person thinks about a question.
const forever = 100 * 365 * 24 * time.Hour

// NewClock makes a clock that calls atEnd in d.
func NewClock(d time.Duration, atEnd func()) *Clock {
	return &Clock{deadline: time.Now().Add(d), timer: time.AfterFunc(d, contain.Func("ending a run whose time is up", atEnd))}
}

// Pause makes the clock stand still until resume is called, which must be called
// once. Several pauses may overlap. It does nothing once the time is up.
func (c *Clock) Pause() (resume func()) {
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

// Stop stops the clock for good, and reports whether the time was not up.
func (c *Clock) Stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := !c.stopped && c.pauses > 0
	c.stopped = true
	return c.timer.Stop() || before
}

// Up reports whether the time is up.
func (c *Clock) Up() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.deadline)
}
