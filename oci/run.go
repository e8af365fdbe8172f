package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// Run starts p in a sandbox of its own and returns when every process in it
// has ended. If ctx ends first they are killed at once; that is not an error.
func (r *Runtime) Run(ctx context.Context, p Process) (exit Exit, err error) {
	defer p.closeFiles()
	h, err := r.containers.Host()
	if err != nil {
		return Exit{}, err
	}
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	if err := h.CheckMounts(); err != nil {
		return Exit{}, err
	}
	// Another server must not sweep our folder, even if we start nothing new.
	if _, err := r.containers.StateDir(); err != nil {
		return Exit{}, fmt.Errorf("making the sandbox state folder again: %w", err)
	}
	standby, release := r.standby(ctx, p, h)
	switch {
	case release == nil:
	case p.Kept:
		release()
	default:
		defer release()
	}
	if standby != nil {
		exit, err := r.runStandby(ctx, standby, p, h)
		if !errors.Is(err, container.ErrGone) {
			return exit, err
		}
	}
	s, line, h, err := r.containers.Start(p.sandboxed(r.uid, r.gid), p.Stdout, p.Stderr, h)
	if err != nil {
		return Exit{}, explainStart(err)
	}
	defer line.Close()
	defer func() { err = errors.Join(err, s.Destroy()) }()
	p.closeFiles()
	return supervise(ctx, p, s, h, func() {
		// If no control socket arrives, the sandbox is exiting; Wait reports why.
		if conn, workspace, err := line.Receive(); err == nil {
			p.start(conn, workspace)
		}
	})
}

// standby gives a sandbox for p that is ready, or quickly made, nil if there is
// none; and what to call when the run is over, nil if there is no pool for it.
func (r *Runtime) standby(ctx context.Context, p Process, h spec.Host) (*container.Standby, func()) {
	if p.Python == nil || p.Control == nil || p.Stdout == nil || p.Stderr == nil {
		return nil, nil
	}
	return r.pool.Acquire(ctx, p.sandboxed(r.uid, r.gid), h)
}

// runStandby runs p in a sandbox that waits for its streams. What remains of it
// is removed when this has returned.
func (r *Runtime) runStandby(ctx context.Context, s *container.Standby, p Process, h spec.Host) (Exit, error) {
	if err := s.Attach(p.Stdout, p.Stderr); err != nil {
		return Exit{}, err
	}
	p.closeFiles()
	defer r.containers.Later(container.AfterAnswer, func() { _ = s.Destroy() })
	return supervise(ctx, p, s, h, func() { p.start(s.Conn, s.Workspace) })
}

// supervise keeps the limits of a sandbox, and its time, until it has ended. Talk
// is called once they are kept, if the process has a control socket.
func supervise(ctx context.Context, p Process, s container.Sandbox, h spec.Host, talk func()) (Exit, error) {
	watch := limits.Start(s, p.Limits, h.Host)
	stop := context.AfterFunc(ctx, watch.Stop)
	defer stop()
	if p.Urge != nil {
		defer container.SignalEach(p.Urge, s)()
	}
	if p.Control != nil {
		talk()
	}
	exit, there, err := outcome(s, p.Ended)
	if err != nil {
		watch.End(false, false)
		return Exit{}, fmt.Errorf("waiting for the sandbox: %w", err)
	}
	exit.OOM, exit.PIDs = watch.End(exit.Signal == unix.SIGKILL && ctx.Err() == nil, there)
	return exit, nil
}

// outcome waits until a sandbox has ended, or says that it has, and tells
// whether its cgroup is certainly still there.
func outcome(s container.Sandbox, ended <-chan int) (exit Exit, there bool, err error) {
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		exit, err = s.Wait()
	}()
	select {
	case <-waited:
		return exit, s.CgroupPersists() && exit.Signal == 0, err
	case code := <-ended:
		return Exit{Code: code}, true, nil
	}
}

// explainStart says why a sandbox could not be started, if the host is to blame.
func explainStart(err error) error {
	var s *container.StartError
	if !errors.As(err, &s) {
		return err
	}
	return doctor.ExplainStart(s.Err, s.Host, s.Dir, s.Root)
}
