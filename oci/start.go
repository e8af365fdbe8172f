package oci

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
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
}

// Start starts p in a sandbox of its own, which the caller must close. When ctx
// ends, every process in the sandbox is killed at once; that is not an error.
// p's streams belong to Start, also if it fails.
func (r *Runtime) Start(ctx context.Context, p Process) (*Sandbox, error) {
	defer p.Streams.Close()
	h, err := r.containers.Host()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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
	started := false
	defer func() {
		if !started {
			release()
		}
	}()
	if standby != nil && standby.Attach(p.Streams) == nil {
		s := r.superviseStandby(ctx, p, h, standby, release)
		started = true
		return s, nil
	}
	s, err := r.startCold(ctx, p, h, release)
	started = err == nil
	return s, err
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

// superviseStandby returns the handle of an attached standby sandbox. It is removed only
// after the answer.
func (r *Runtime) superviseStandby(ctx context.Context, p Process, h spec.Host, s *container.Standby, release func()) *Sandbox {
	supervised := false
	defer func() {
		if !supervised {
			s.Discard()
		}
	}()
	sb, ctx := newSandbox(ctx, s)
	sb.watch = s.Watch
	sb.keepLimits(ctx, p.Limits, h)
	sb.conn, sb.workspace, sb.line = s.Conn, s.Workspace, s.Lifeline
	sb.freezer = container.NewFreezer(s, s.Lifeline, h.Cgroup)
	go sb.supervise(ctx, func() error {
		r.containers.Later(container.AfterAnswer, func() { _ = s.Destroy() })
		release()
		return nil
	})
	supervised = true
	return sb
}

// startCold starts p in a new container.
func (r *Runtime) startCold(ctx context.Context, p Process, h spec.Host, release func()) (*Sandbox, error) {
	c, line, h, err := r.containers.Start(p.Process, p.Streams, h)
	if err != nil {
		return nil, explainStart(err)
	}
	supervised := false
	defer func() {
		if !supervised {
			line.Close()
			_ = c.Destroy()
		}
	}()
	p.Streams.Close()
	sb, ctx := newSandbox(ctx, c)
	sb.line = line
	sb.keepLimits(ctx, p.Limits, h)
	if p.Control {
		// If no control socket arrives, the sandbox is exiting; Wait reports why.
		if conn, workspace, err := line.Receive(); err == nil {
			sb.conn, sb.workspace = conn, workspace
		}
	}
	sb.freezer = container.NewFreezer(c, line, h.Cgroup)
	go sb.supervise(ctx, func() error {
		defer release()
		defer line.Close()
		return c.Destroy()
	})
	supervised = true
	return sb, nil
}

// explainStart adds why a sandbox could not be started, if the host is to blame.
func explainStart(err error) error {
	var s *container.StartError
	if !errors.As(err, &s) {
		return err
	}
	return doctor.ExplainStart(s, s.Host, s.Dir, s.Root)
}
