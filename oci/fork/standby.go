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
	defer e.AtStop(s.s.Kill)()
	_ = s.conn.SetReadDeadline(time.Now().Add(forkTimeout))
	if err := awaitByte(s.conn, 'w'); err != nil {
		s.workspace.Close()
		return nil, nil, fmt.Errorf("waiting for the program: %w: %s", err, s.destroy())
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	return &container.Standby{Sandbox: &waiting{s.s, s}, Conn: s.conn, Lifeline: s.line, Workspace: s.workspace, Runtime: e, Alive: func() bool { return !s.Gone() }, Watch: s.watch}, s.notes, nil
}

// A waiting is the container of a zygote, which watches for its end.
type waiting struct {
	*container.Container
	zygote *zygote
}

func (w *waiting) Destroy() error { w.zygote.destroy(); return nil }

func (w *waiting) Wait() (container.Exit, error) {
	<-w.zygote.ended
	return w.zygote.exit, w.zygote.err
}
