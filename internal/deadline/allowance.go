package deadline

import (
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// An Allowance is how long a deadline may be put off for one reason, in all: code that calls
// servers that never start would go on for ever. A nil one puts none off.
type Allowance struct {
	of *Deadline

	mu      sync.Mutex
	left    time.Duration
	waiting int // that have called Wait
	since   time.Time
	resume  func() // nil unless the deadline is paused
	timer   *time.Timer
}

// Allow returns an allowance for a deadline.
func (d *Deadline) Allow(most time.Duration) *Allowance { return &Allowance{of: d, left: most} }

// Wait pauses the deadline until done is called. Waits may overlap.
func (a *Allowance) Wait() (done func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting++
	if a.waiting == 1 && a.left > 0 {
		a.since, a.resume = time.Now(), a.of.Pause()
		a.timer = time.AfterFunc(a.left, func() {
			defer contain.Recover("resuming a deadline", nil)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.end()
		})
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.waiting--; a.waiting == 0 {
			a.end()
		}
	}
}

// end resumes the deadline, if it is paused. a.mu is held.
func (a *Allowance) end() {
	if a.resume == nil {
		return
	}
	a.left -= time.Since(a.since)
	a.timer.Stop()
	resume := a.resume
	a.resume = nil
	resume()
}
