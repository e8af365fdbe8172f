package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A warm sandbox has started, and its program waits for its streams: a fork of
// a template, or a container of which fork.py is the program. It is used once.
type warm struct {
	s      container.Sandbox
	conn   *net.UnixConn
	engine *container.Runtime
	alive  func() bool
}

// errNotWarm says that a warm sandbox was none any more, and that nothing of a
// run has happened in it.
var errNotWarm = errors.New("the sandbox that waited has ended")

// newWarmFork forks one.
func newWarmFork(t *template, now bool) (*warm, error) {
	f, err := t.fork(now)
	if err != nil {
		return nil, err
	}
	return &warm{s: f, conn: f.conn, engine: t.engine, alive: func() bool { return !t.gone() }}, nil
}

// newWarmContainer starts one.
func newWarmContainer(e *container.Runtime, p spec.Process, h spec.Host) (_ *warm, notes []string, err error) {
	s, err := startProgram(e, p, h, false)
	if err != nil {
		return nil, nil, err
	}
	defer e.AtStop(s.s.Kill)()
	_ = s.conn.SetReadDeadline(time.Now().Add(forkPatience))
	if err := awaitByte(s.conn, 'w'); err != nil {
		return nil, nil, fmt.Errorf("waiting for the program: %w: %s", err, s.end())
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	return &warm{s: &waiting{s}, conn: s.conn, engine: e, alive: func() bool { return !s.gone() }}, s.notes, nil
}

// A waiting is the container of a starter, which looks out for its end.
type waiting struct{ *starter }

func (w *waiting) PID() int                                  { return w.s.PID() }
func (w *waiting) Kill()                                     { w.s.Kill() }
func (w *waiting) Cgroup() (cgroups.Manager, error)          { return w.s.Cgroup() }
func (w *waiting) Counter(controller string) ([]byte, error) { return w.s.Counter(controller) }
func (w *waiting) CgroupPersists() bool                      { return w.s.CgroupPersists() }
func (w *waiting) OOM() (<-chan struct{}, error)             { return w.s.OOM() }
func (w *waiting) Destroy() error                            { w.end(); return nil }

func (w *waiting) Wait() (container.Exit, error) {
	<-w.ended
	return w.exit, w.err
}

// run gives the sandbox its streams and attends it. What remains of it is
// removed when this has returned.
func (w *warm) run(ctx context.Context, p Process, h spec.Host) (container.Exit, error) {
	if w.s == nil {
		return container.Exit{}, errNotWarm
	}
	if err := w.give(p.Stdout, p.Stderr); err != nil {
		w.discard()
		return container.Exit{}, errNotWarm
	}
	p.closeFiles()
	defer w.engine.Later(afterAnswer, func() { _ = w.s.Destroy() })
	return attend(ctx, p, w.s, h, func() { p.start(w.conn, w.s) })
}

// give sends the streams.
func (w *warm) give(stdout, stderr *os.File) error {
	// Fd makes them block, which programs expect of their streams.
	_, _, err := w.conn.WriteMsgUnix([]byte("s"), unix.UnixRights(int(stdout.Fd()), int(stderr.Fd())), nil)
	return err
}

// afterAnswer is how long what follows a run waits, so that it does not take
// the processor from the answer.
const afterAnswer = time.Millisecond

// discard removes it, beside everything else.
func (w *warm) discard() {
	w.engine.Later(0, func() { _ = w.s.Destroy() }) // what cannot be removed is swept by the next start
}
