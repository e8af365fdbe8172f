// Package deadline bounds the time of work by a deadline that can be put off, such as while the user is asked.
package deadline

import (
	"context"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A Deadline is when work has to be done. It is safe for concurrent use. A nil one never passes.
type Deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	at      time.Time
	pauses  int           // that have begun and are not over
	left    time.Duration // to the deadline, when they are over
	stopped bool
	life    context.Context // ends when it has passed
	pass    context.CancelFunc
}

// forever is longer than any person thinks about a question.
const forever = 100 * 365 * 24 * time.Hour

// late is what the functions of a deadline do.
const late = "ending what took too long"

// New returns a deadline that passes in some time.
func New(in time.Duration) *Deadline {
	d := &Deadline{at: time.Now().Add(in)}
	d.life, d.pass = context.WithCancel(context.Background())
	d.timer = time.AfterFunc(in, contain.Func(late, d.end))
	return d
}

// Bound returns a context that ends with a cause in some time, and that deadline. 0 is no
// bound. cancel also ends the context.
func Bound(ctx context.Context, in time.Duration, cause error) (_ context.Context, d *Deadline, cancel context.CancelFunc) {
	if in <= 0 {
		ctx, cancel = context.WithCancel(ctx)
		return ctx, nil, cancel
	}
	ctx, end := context.WithCancelCause(ctx)
	d = New(in)
	d.AfterFunc(func() { end(cause) })
	return ctx, d, func() {
		d.Stop()
		end(nil)
	}
}

// AfterFunc has f called in a goroutine of its own when the deadline passes, at once if it
// has. stop prevents that, and reports whether it did.
func (d *Deadline) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(d.life, contain.Func(late, f))
}

func (d *Deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.pass()
	}
}

// Pause puts the deadline off by the time until resume is called, which must be called
// once. Several pauses may overlap. It does nothing once the deadline has passed.
func (d *Deadline) Pause() (resume func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pauses == 0 {
		if !d.timer.Stop() {
			return func() {}
		}
		d.left = time.Until(d.at)
		d.at = time.Now().Add(forever)
	}
	d.pauses++
	return d.resume
}

func (d *Deadline) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pauses--
	if d.pauses == 0 && !d.stopped {
		d.at = time.Now().Add(d.left)
		d.timer.Reset(d.left)
	}
}

// Stop ends the deadline for good: nothing is called any more.
func (d *Deadline) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
}

// Passed reports whether the deadline has passed.
func (d *Deadline) Passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !time.Now().Before(d.at)
}
