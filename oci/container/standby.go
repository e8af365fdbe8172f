package container

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/pid1"
	"golang.org/x/sys/unix"
)

// A Started is a sandbox with the host's ends of what leads into it.
type Started struct {
	Sandbox
	Lifeline pid1.Lifeline
	Conn     *net.UnixConn // to the program, which has the other end as descriptor 3, or nil
	// Workspace is the sandbox's /workspace (pid1.Lifeline.Receive), nil without Conn.
	Workspace *os.File
	// Watch already enforces its limits, if modules that it has imported could exceed them;
	// otherwise nil.
	Watch *limits.Watch
}

// A Standby is a started sandbox whose program waits for its streams. It is used once. It
// closes its Lifeline; its Workspace belongs to the caller once Attach has succeeded.
type Standby struct {
	Started
	Alive   func() bool // it has not ended
	Runtime *Runtime
}

// Attach gives the program its streams, with which it begins. If the sandbox has ended,
// Attach discards it and returns an error; no part of the run has happened then.
func (s *Standby) Attach(streams Streams) error {
	// Fd sets them to blocking mode, which programs expect.
	fds := []int{int(streams.Stdout.Fd()), int(streams.Stderr.Fd())}
	if streams.Stdin != nil {
		fds = append(fds, int(streams.Stdin.Fd()))
	}
	_, _, err := s.Conn.WriteMsgUnix([]byte("s"), unix.UnixRights(fds...), nil)
	if err != nil {
		s.Discard()
		return fmt.Errorf("handing a standby sandbox its streams: %w", err)
	}
	return nil
}

// Discard removes it in the background.
func (s *Standby) Discard() {
	if s.Workspace != nil {
		s.Workspace.Close()
	}
	s.Runtime.Later(0, func() { _ = s.Destroy() }) // the next start sweeps what this cannot remove
}

// AfterAnswer delays the cleanup of a run, so that it does not compete with the
// answer for the processor.
const AfterAnswer = time.Millisecond
