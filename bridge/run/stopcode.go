package run

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/contain"
)

// stopPatience is how long code of a session may take to end when the user has stopped
// its run, or has not answered. After that its sandbox is killed.
const stopPatience = 3 * time.Second

// A codeStop ends the code of one run in a session, and leaves the session: its variables
// are not what the user has refused. Nothing that the run asks of the host is done any
// more, so that the code cannot go on with its calls while it is ending.
type codeStop struct {
	interrupt func()          // the code
	refuse    func(why error) // all further calls
	kill      func(why error) // the sandbox
	frozen    func() bool     // whether the code still stands still

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
	s.refuse(why)
	s.interrupt()
	s.timer = time.AfterFunc(stopPatience, s.expire)
}

// expire ends the sandbox of code that did not stop.
func (s *codeStop) expire() {
	defer contain.Recover("ending a run that was stopped", s.kill)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen() { // until there is a slot for it: it could not stop yet
		s.timer.Reset(stopPatience)
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

// codeStop returns what stops the code of a run in a session.
func (in *interpreter) codeStop(refuse, kill func(why error)) *codeStop {
	return &codeStop{interrupt: func() { in.signal(syscall.SIGINT) }, refuse: refuse, kill: kill, frozen: in.freezes.frozen}
}

// stoppedByUser reports whether an error is that the user has stopped a run, or did not
// answer.
func stoppedByUser(err error) bool {
	return gate.IsStopped(err)
}

// keptNote says that a session goes on after a run of it was stopped.
func keptNote(session string) string {
	return fmt.Sprintf("the call that waited was not made; session %q goes on, with its variables", session)
}
