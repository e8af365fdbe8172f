package run

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/contain"
)

// stopTimeout is how long code of a session may take to end when the user has stopped
// its run, or has not answered. After that its sandbox is killed.
const stopTimeout = 3 * time.Second

// A codeStop ends the code of one run in a session, and leaves the session: its variables
// are not what the user has refused. Nothing that the run asks of the host is done any
// more, so that the code cannot go on with its calls while it is ending.
type codeStop struct {
	python *interpreter
	gate   *gate.Gate
	kill   context.CancelCauseFunc // ends the sandbox

	mu    sync.Mutex
	why   error // nil if the run was not stopped
	timer *time.Timer
}

// stop stops the code.
func (s *codeStop) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		return
	}
	s.why = why
	s.gate.Stop(why)
	s.python.signal(syscall.SIGINT)
	s.timer = time.AfterFunc(stopTimeout, s.expire)
}

// expire ends the sandbox of code that did not stop.
func (s *codeStop) expire() {
	defer contain.Recover("ending a run that was stopped", s.kill)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.python.freezes.frozen() { // until there is a slot for it: it could not stop yet
		s.timer.Reset(stopTimeout)
		return
	}
	s.kill(s.why)
}

// ended says that the code has ended, and returns why it was stopped, if it was.
func (s *codeStop) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.why
}

// stoppedByUser reports whether an error is that the user has stopped a run, or did not
// answer.
func stoppedByUser(err error) bool {
	return gate.IsStopped(err)
}

// keptNote says that a session goes on after the user has not allowed something of a run.
func keptNote(what, session string) string {
	return fmt.Sprintf("%s; session %q goes on, with its variables", what, session)
}
