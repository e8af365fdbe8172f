package bridge

import (
	"context"
	"sync"
)

// A slot is one of the places for runs that work at the same time.
type slot struct {
	slots chan struct{}

	mu    sync.Mutex
	taken bool
	over  bool // the run has ended
}

// take waits for the slot until ctx ends.
func (sl *slot) take(ctx context.Context) {
	select {
	case sl.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.over {
		<-sl.slots
		return
	}
	sl.taken = true
}

// lend gives the slot to another run until take.
func (sl *slot) lend() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.taken {
		sl.taken = false
		<-sl.slots
	}
}

// giveBack is lend for good.
func (sl *slot) giveBack() {
	sl.lend()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.over = true
	if sl.taken { // a question was answered just now
		sl.taken = false
		<-sl.slots
	}
}
