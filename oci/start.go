package oci

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Process describes what to run, and in which sandbox.
type Process struct {
	spec.Process
	// Start owns the streams: they are closed once the process has them, or
	// failed to start. Standard input is empty if Stdin is nil.
	container.Streams
	// Session means that the process waits for more runs after its first one; it does not
	// count as running.
	Session bool
	// FindProject, if it is not nil, finds the folder that p is shown and what of it is hidden;
	// a nil Project is none. It is called again if something in the folder is replaced while
	// the sandbox starts. If ctx ends, so does the start.
	FindProject func(ctx context.Context) (*spec.Project, error)
}

// findProject fills in what p is shown, and returns the host with it.
func (p *Process) findProject(ctx context.Context, h spec.Host) (spec.Host, error) {
	if p.FindProject != nil {
		var err error
		if p.Project, err = p.FindProject(ctx); err != nil {
			return h, err
		}
	}
	return h.Showing(p.Project), nil
}

// projectTries is how often a sandbox is started whose project changes meanwhile.
const projectTries = 4

// Start starts p in a sandbox of its own, which the caller must close. When ctx
// ends, every process in the sandbox is killed at once; that is not an error.
// p's streams belong to Start, also if it fails.
func (r *Runtime) Start(ctx context.Context, p Process) (*Sandbox, error) {
	defer p.Streams.Close()
	for try := 1; ; try++ {
		s, err := r.start(ctx, p)
		if !errors.Is(err, container.ErrProjectChanged) || try == projectTries {
			return s, err
		}
	}
}

// start is one try of Start. It closes the streams only if it succeeds.
func (r *Runtime) start(ctx context.Context, p Process) (*Sandbox, error) {
	h, err := r.containers.Host()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h, err = p.findProject(ctx, h); err != nil {
		return nil, err
	}
	if h, err = h.Serving(p.Server); err != nil {
		return nil, err
	}
	if err := h.CheckMounts(); err != nil {
		return nil, err
	}
	// Another server must not sweep our folder, even if we start nothing new.
	if _, err := r.containers.StateDir(); err != nil {
		return nil, fmt.Errorf("making the sandbox state folder again: %w", err)
	}
	standby, release := r.acquireStandby(ctx, p, h)
	if p.Session {
		release()
	}
	var s *Sandbox
	defer func() {
		if s == nil {
			release()
		}
	}()
	if standby != nil && container.CheckProject(standby.PID(), h) != nil {
		// So it is with the others of its kind.
		standby.Discard()
		r.pool.Forget(p.Process, h)
		r.pool.Prepare(p.Process, h)
		standby = nil
	}
	if standby != nil && standby.Attach(p.Streams) == nil {
		s = supervise(ctx, p, h, standby.Started, func(s *Sandbox) error {
			// Only after the answer.
			r.containers.Later(container.AfterAnswer, func() {
				s.count()
				_ = standby.Destroy()
			})
			release()
			return nil
		})
		s.origin = Standing
		if standby.Forked {
			s.origin = Forked
		}
		return s, nil
	}
	cold, h, err := r.containers.Start(p.Process, p.Streams, h)
	if err != nil {
		return nil, explainStart(err)
	}
	p.Streams.Close()
	s = supervise(ctx, p, h, cold, func(s *Sandbox) error {
		s.count()
		defer release()
		defer cold.Lifeline.Close()
		return cold.Destroy()
	})
	s.origin = Cold
	return s, nil
}

// acquireStandby returns a standby sandbox for p, or nil if there is none, and a function to
// call when p no longer counts as running; further calls of it do nothing.
func (r *Runtime) acquireStandby(ctx context.Context, p Process, h spec.Host) (*container.Standby, func()) {
	if p.Python == nil || !p.Control || p.Stdout == nil || p.Stderr == nil {
		return nil, func() {}
	}
	standby, release := r.pool.Acquire(ctx, p.Process, h)
	return standby, sync.OnceFunc(contain.Func("giving back the place of a run", release))
}

// supervise returns the handle of a sandbox whose program begins now. remove is called when
// everything in it has ended.
func supervise(ctx context.Context, p Process, h spec.Host, s container.Started, remove func(*Sandbox) error) *Sandbox {
	sb := &Sandbox{ended: make(chan struct{}), counted: make(chan struct{})}
	defer contain.Undo(func() { _ = remove(sb) })
	ctx, kill := context.WithCancel(ctx)
	if s.Watch == nil {
		s.Watch = limits.Start(s, p.Limits, h.Host)
	}
	stopWatch := context.AfterFunc(ctx, s.Watch.Kill)
	if p.Control && s.Conn == nil {
		// If no control socket arrives, the sandbox is exiting; Wait reports why.
		s.Conn, s.Workspace, _ = s.Lifeline.Receive()
	}
	sb.sandbox, sb.stopWatch, sb.kill = s, stopWatch, kill
	sb.freezer = container.NewFreezer(s, s.Lifeline, h.Cgroup)
	sb.finished, sb.finish = context.WithCancelCause(context.Background())
	go sb.supervise(ctx, remove)
	return sb
}

// explainStart adds why a sandbox could not be started, if the host is to blame.
func explainStart(err error) error {
	var s *container.StartError
	if !errors.As(err, &s) {
		return err
	}
	return doctor.ExplainStart(s, s.Host, s.Dir, s.Root)
}
