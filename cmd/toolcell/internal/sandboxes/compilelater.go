package sandboxes

import (
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// compileAfter is how long modules are not compiled after a run has got its packages:
// most first runs have imported by then what they need, for which they need the
// processors themselves.
const compileAfter = 3 * time.Second

// A compile is one to be started.
type compile struct {
	image string
	timer *time.Timer
}

// compileLater starts to compile a set after a while.
func (s *Packages) compileLater(image, set string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiles == nil {
		s.compiles = map[string]*compile{}
	}
	if s.compiles[set] == nil {
		s.compiles[set] = &compile{image, time.AfterFunc(compileAfter, contain.Func("compiling packages", func() { s.compileNow(set) }))}
	}
}

func (s *Packages) compileNow(set string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.compiles[set]; c != nil {
		delete(s.compiles, set)
		s.Compile(c.image, set)
	}
}

// Close starts to compile what is waiting: the runs are over.
func (s *Packages) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for set, c := range s.compiles {
		c.timer.Stop()
		delete(s.compiles, set)
		s.Compile(c.image, set)
	}
}
