package run

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

// take waits for the slot until ctx ends, and reports whether the run has it.
func (s *slot) take(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken = !s.over; !s.taken {
		<-s.slots
	}
	return s.taken
}

// release gives the slot to another run until take.
func (s *slot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		s.taken = false
		<-s.slots
	}
}

// close is release for good. A question may be answered at the same moment.
func (s *slot) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.release()
}
