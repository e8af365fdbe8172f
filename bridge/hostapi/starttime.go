package hostapi

import (
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A startTime takes the time in which servers start for a run out of the run's own time,
// up to a bound: code that calls servers that never start would go on for ever.
type startTime struct {
	pause func() (resume func()) // nil: nothing is paused

	mu      sync.Mutex
	left    time.Duration
	waiting int // calls that wait for a server
	since   time.Time
	resume  func() // nil unless the time is paused
	timer   *time.Timer
}

// wait pauses the run's time until done is called. Waits may overlap.
func (s *startTime) wait() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.waiting == 1 && s.pause != nil && s.left > 0 {
		s.since, s.resume = time.Now(), s.pause()
		s.timer = time.AfterFunc(s.left, func() {
			defer contain.Recover("resuming the time of a run", nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end()
		})
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting--; s.waiting == 0 {
			s.end()
		}
	}
}

// end resumes the time, if it is paused. s.mu is held.
func (s *startTime) end() {
	if s.resume == nil {
		return
	}
	s.left -= time.Since(s.since)
	s.timer.Stop()
	resume := s.resume
	s.resume = nil
	resume()
}
