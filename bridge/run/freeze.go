package run

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
)

// freezes counts for how many reasons a sandbox is frozen.
type freezes struct {
	mu    sync.Mutex
	n     int
	since time.Time
}

// begin freezes the sandbox until end is called. If it is called again meanwhile, the
// last end thaws the sandbox. held says that the time is not to count for the code.
func (f *freezes) begin(sb Sandbox) (end func(held bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		sb.Freeze()
		f.since = time.Now()
	}
	f.n++
	return func(held bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.n--; f.n > 0 {
			return
		}
		if held {
			sb.AddHeld(time.Since(f.since)) // before the code looks at its timers
		}
		sb.Thaw()
	}
}

// frozen reports whether the sandbox is frozen.
func (f *freezes) frozen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n > 0
}

// A pictureTime bounds the time in which the pictures of the active run are decoded.
type pictureTime struct{ clock atomic.Pointer[runner.Clock] }

// limit cancels the decoding in d, unless stop is called before.
func (p *pictureTime) limit(d time.Duration, cancel context.CancelCauseFunc) (stop func()) {
	clock := runner.NewClock(d, func() { cancel(context.DeadlineExceeded) })
	p.clock.Store(clock)
	return func() {
		p.clock.Store(nil)
		clock.Stop()
	}
}

// pause makes the time stand still until resume is called.
func (p *pictureTime) pause() (resume func()) {
	if clock := p.clock.Load(); clock != nil {
		return clock.Pause()
	}
	return func() {}
}
