package mcpproxy

import (
	"errors"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// A ServerLog is the end of what a server wrote that is no message of the protocol, without the
// secrets of its entry and without escapes. A remote server writes nothing here.
type ServerLog struct {
	Lines   []string
	Running bool      // the server that wrote them
	Since   time.Time // when it was last started; zero if it never was
	Failure string    // why it does not run, "" if it did not fail
	Private bool      // it may have what was read from private servers (NotePrivate)
}

// Refused says what the sandbox of a server has refused since a time, and where the user can change that;
// "" is nothing. A tool that answers that it has failed does not say so itself.
func (p *Proxy) Refused(server string, since time.Time) string {
	u, err := p.upstream(server)
	if err != nil {
		return ""
	}
	u.mu.Lock()
	s := u.live
	u.mu.Unlock()
	if s == nil {
		return ""
	}
	return stdio.Explanation(s.Explain(errors.New("a tool failed"), since))
}

// NotePrivate notes that code which may have what was read from private servers calls a server, which may
// write that.
func (p *Proxy) NotePrivate(server string) {
	if u, err := p.upstream(server); err == nil {
		u.private.Store(true)
	}
}

// ServerLog returns what a server of this process wrote. What it wrote may be anything, also the
// user's data: it is for the user. ok is false if there is no such server.
func (p *Proxy) ServerLog(server string) (log ServerLog, ok bool) {
	u, err := p.upstream(server)
	if err != nil {
		return log, false
	}
	u.mu.Lock()
	live, failure := u.live, u.failure
	log = ServerLog{Lines: u.wrote, Since: u.since, Private: u.private.Load()}
	u.mu.Unlock()
	switch {
	case live != nil:
		log.Running, log.Lines = true, live.Written()
	case failure != nil:
		log.Failure = u.secrets.Error(WithoutOutput(failure)).Error()
		if lines := stdio.Output(failure); lines != nil {
			log.Lines = lines
		}
	}
	return log, true
}

// keepWritten keeps what a server wrote that has ended.
func (u *upstream) keepWritten(s *transport.Session) {
	lines := s.Written()
	u.mu.Lock()
	defer u.mu.Unlock()
	defer contain.Recover("keeping what a server wrote", u.lose)
	u.wrote = lines
}
