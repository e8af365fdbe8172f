package fork

import (
	"fmt"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
)

// NewStandby starts a container in which the program waits, and notes which
// modules could not be preloaded.
func NewStandby(e *container.Runtime, p spec.Process, h spec.Host) (_ *container.Standby, notes []string, err error) {
	s, err := startProgram(e, p, h, false)
	if err != nil {
		return nil, nil, err
	}
	defer e.AtStop(s.Kill)()
	_ = s.Conn.SetReadDeadline(time.Now().Add(forkTimeout))
	if err := awaitByte(s.Conn, 'w'); err != nil {
		s.Workspace.Close()
		return nil, nil, fmt.Errorf("waiting for the program: %w: %s", err, s.destroy())
	}
	_ = s.Conn.SetReadDeadline(time.Time{})
	started := s.Started
	started.Sandbox = s // which watches for its end
	return &container.Standby{Started: started, Runtime: e, Alive: func() bool { return !s.Gone() }}, s.notes, nil
}

// Destroy implements container.Sandbox.
func (s *zygote) Destroy() error { s.destroy(); return nil }

// Wait implements container.Sandbox.
func (s *zygote) Wait() (container.Exit, error) {
	<-s.ended
	return s.exit, s.err
}
