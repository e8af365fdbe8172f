package fork

import (
	"fmt"
	"time"

	"github.com/opencontainers/cgroups"
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
	_ = s.conn.SetReadDeadline(time.Now().Add(forkPatience))
	if err := awaitByte(s.conn, 'w'); err != nil {
		s.workspace.Close()
		return nil, nil, fmt.Errorf("waiting for the program: %w: %s", err, s.destroy())
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	return &container.Standby{Sandbox: &waiting{s}, Conn: s.conn, Lifeline: s.line, Workspace: s.workspace, Runtime: e, Alive: func() bool { return !s.Gone() }, Watch: s.watch}, s.notes, nil
}

// A waiting is the container of a starter, which watches for its end.
type waiting struct{ *starter }

func (w *waiting) PID() int                                  { return w.s.PID() }
func (w *waiting) Kill()                                     { w.s.Kill() }
func (w *waiting) Cgroup() (cgroups.Manager, error)          { return w.s.Cgroup() }
func (w *waiting) Counter(controller string) ([]byte, error) { return w.s.Counter(controller) }
func (w *waiting) CgroupPersists() bool                      { return w.s.CgroupPersists() }
func (w *waiting) OOM() (<-chan struct{}, error)             { return w.s.OOM() }
func (w *waiting) Destroy() error                            { w.destroy(); return nil }

func (w *waiting) Wait() (container.Exit, error) {
	<-w.ended
	return w.exit, w.err
}
