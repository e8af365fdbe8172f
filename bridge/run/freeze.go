package run

import (
	"sync"
	"time"
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
