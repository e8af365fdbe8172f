package container

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Standby is a sandbox that has started, and whose program waits for its
// streams. It is used once.
type Standby struct {
	Sandbox
	Conn *net.UnixConn // to the program, which has the other end as descriptor 3
	// Workspace is the sandbox's /workspace (pid1.Lifeline.Receive). It belongs
	// to the caller once Attach has succeeded.
	Workspace *os.File
	Alive     func() bool // it has not ended
	Runtime   *Runtime
}

// Attach gives the program its streams, and with that lets it begin. If the
// sandbox has ended, it discards it and returns an error: nothing of a run has
// happened in it then.
func (s *Standby) Attach(stdout, stderr *os.File) error {
	// Fd makes them block, which programs expect of their streams.
	_, _, err := s.Conn.WriteMsgUnix([]byte("s"), unix.UnixRights(int(stdout.Fd()), int(stderr.Fd())), nil)
	if err != nil {
		s.Discard()
		return fmt.Errorf("handing a standby sandbox its streams: %w", err)
	}
	return nil
}

// Discard removes it, beside everything else.
func (s *Standby) Discard() {
	if s.Workspace != nil {
		s.Workspace.Close()
	}
	s.Runtime.Later(0, func() { _ = s.Destroy() }) // what cannot be removed is swept by the next start
}

// AfterAnswer is how long what follows a run waits, so that it does not take
// the processor from the answer.
const AfterAnswer = time.Millisecond
