// Package oci runs a process in a fresh rootless sandbox, with libcontainer
// and without any daemon.
//
// It promises that a process runs in its own user, mount, pid, network, ipc,
// uts and cgroup namespaces, without capabilities and without a way to gain
// privileges, on a read-only root; that the sandbox ends as a whole when its
// first process ends or its context does; and that what a killed server left
// is swept by the next one. It refuses to start anything weaker.
//
// Where the host gives no cgroup it keeps the memory limit by watching, which
// code can overshoot for some milliseconds, and limits CPU time by the number
// of processors; Runtime.Missing says so.
package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/pool"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/oci/template"
	"golang.org/x/sys/unix"
)

// Root and the others are what a sandbox is made of, in the words of package spec.
type (
	Root   = spec.Root
	Bind   = spec.Bind
	Mount  = spec.Mount
	Limits = spec.Limits
	Python = spec.Python
)

// A Runtime starts sandboxes. It is safe for concurrent use.
type Runtime struct {
	engine   *container.Runtime
	uid, gid uint32 // inside
	pool     *pool.Pool
}

// Open prepares to run sandboxes whose code has the given ids inside. dir is
// the folder for their state, which servers may share; what servers that were
// killed left there is ended and removed. The host is not looked at before it
// is needed.
func Open(dir string, uid, gid uint32) (*Runtime, error) {
	e, err := container.Open(dir, uid, gid)
	if err != nil {
		return nil, err
	}
	r := &Runtime{engine: e, uid: uid, gid: gid}
	r.pool = pool.New(e, pool.Source{
		MemoryAvailable: host.MemoryAvailable,
		Template: func(p spec.Process, h spec.Host) (pool.Template, error) {
			t, err := template.New(e, p, h)
			if err != nil {
				return nil, explainStart(err)
			}
			return t, nil
		},
		Container: func(p spec.Process, h spec.Host) (*container.Standby, []string, error) {
			return template.NewStandby(e, p, h)
		},
	})
	return r, nil
}

// Mount makes all sandboxes show these. It is called before the first starts.
func (r *Runtime) Mount(ms []Mount) { r.engine.Mount(ms) }

// Close ends what waits to be used, and removes the state folder of this
// instance. No sandbox may be running.
func (r *Runtime) Close() error {
	r.pool.Close()
	return r.engine.Close()
}

// PoolOptions say how many sandboxes wait to be used, and for how long.
type PoolOptions = pool.Options

// The ways to start sandboxes ahead of their use.
const (
	StartAuto      = pool.StartAuto      // forks, or where they cannot be had containers
	StartFork      = pool.StartFork      // the same, but runs wait for the template, and it is said why there is none
	StartContainer = pool.StartContainer // containers
)

// An Exit is how a sandbox ended.
type Exit = container.Exit

// Check and the others are the results of the checks of this host, in the words
// of package doctor.
type (
	Check     = doctor.Check
	Needs     = doctor.Needs
	HintError = doctor.HintError
)

// How a check came out.
const (
	CheckOK       = doctor.CheckOK
	CheckDegraded = doctor.CheckDegraded // sandboxes run, with something missing
	CheckFatal    = doctor.CheckFatal    // sandboxes cannot run
)

// Examine looks at what this host gives to a server with these needs. It starts
// no sandbox and leaves nothing behind.
func Examine(n Needs) []Check { return doctor.Examine(n) }

// ExplainFolders puts the cause and its cure in front of an error of making
// use of these folders, if they are to blame.
func ExplainFolders(err error, dirs ...string) error { return doctor.ExplainFolders(err, dirs...) }

// A Process is what to run, and in what.
type Process struct {
	Root   Root
	Binds  []Bind // below /run/toolcell
	Args   []string
	Env    []string // the whole environment: none is inherited
	Limits Limits

	// Run owns Stdout and Stderr: they are closed once the process has them,
	// or failed to start. Standard input is empty.
	Stdout, Stderr *os.File
	// Control is given the host's end of a stream socket that the process has
	// as descriptor 3. It is the function's to close. It is not called if the
	// sandbox does not start; if it is nil the process has no such socket.
	Control func(net.Conn)
	// Workspace is given the sandbox's /workspace before Control is called, as
	// a descriptor to open files below (openat(2)), or why it cannot be had.
	// It can be read until it is closed, even if the sandbox was killed, and
	// is the function's to close. It may be nil.
	Workspace func(dir *os.File, err error)
	// Urge has SIGURG sent to the process for each value that comes: one that
	// does not listen to it is not disturbed. It may be nil.
	Urge <-chan struct{}
	// Python says how to start the process ahead of its use, if that can be.
	Python *Python
	// Ended gives the exit code of a process that has nothing more to say,
	// and is alone, before it has ended. Run does not wait for it then. Only
	// who was started ahead of its use can know.
	Ended <-chan int
	// Kept says that the process goes on when its work is done, and waits for
	// more: it does not count as one of those at work.
	Kept bool
}

// sandboxed gives the part of p that says what its sandbox is, for code that
// has these ids in it.
func (p Process) sandboxed(uid, gid uint32) spec.Process {
	return spec.Process{
		Root: p.Root, Binds: p.Binds, Args: p.Args, Env: p.Env, Limits: p.Limits, Python: p.Python,
		UID: uid, GID: gid, Control: p.Control != nil,
	}
}

// Missing lists, for the user, what this host cannot give and what that
// costs, and what could not be preloaded; it is empty on a host that gives
// everything.
func (r *Runtime) Missing(l spec.Limits) []string {
	h, err := r.engine.Host()
	if err != nil {
		return nil
	}
	return slices.Concat(doctor.Missing(h.Host, l), doctor.DeniedMounts(h), r.pool.Notes())
}

// Isolation names what a sandbox lacks on this host, separated by spaces; it
// is empty where it lacks nothing. one-id: code has the host id of this
// process, in a user namespace of its own, for want of a second one.
// watched-limits: some limit is kept by other means than cgroups. no-proc:
// there is no /proc inside.
func (r *Runtime) Isolation(l spec.Limits) string {
	h, err := r.engine.Host()
	if err != nil {
		return ""
	}
	return doctor.Isolation(h.Host, l)
}

// Run starts p in a sandbox of its own and returns when every process in it
// has ended. If ctx ends first they are killed at once; that is not an error.
func (r *Runtime) Run(ctx context.Context, p Process) (exit Exit, err error) {
	defer p.closeFiles()
	h, err := r.engine.Host()
	if err != nil {
		return Exit{}, err
	}
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	if err := h.CheckMounts(); err != nil {
		return Exit{}, err
	}
	// Whoever sweeps must see that we live, also if what runs is here already.
	if _, err := r.engine.StateDir(); err != nil {
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
	s, line, h, err := r.engine.Start(p.sandboxed(r.uid, r.gid), p.Stdout, p.Stderr, h)
	if err != nil {
		return Exit{}, explainStart(err)
	}
	defer line.Close()
	defer func() { err = errors.Join(err, s.Destroy()) }()
	p.closeFiles()
	return attend(ctx, p, s, h, func() {
		// Whoever cannot be spoken with ends, and waiting tells how.
		if conn, workspace, err := line.Receive(); err == nil {
			p.start(conn, workspace)
		}
	})
}

// runStandby runs p in a sandbox that waits for its streams. What remains of it
// is removed when this has returned.
func (r *Runtime) runStandby(ctx context.Context, s *container.Standby, p Process, h spec.Host) (Exit, error) {
	if err := s.Attach(p.Stdout, p.Stderr); err != nil {
		return Exit{}, err
	}
	p.closeFiles()
	defer r.engine.Later(container.AfterAnswer, func() { _ = s.Destroy() })
	return attend(ctx, p, s, h, func() { p.start(s.Conn, s.Workspace) })
}

// attend keeps the limits of a sandbox, and its time, until it has ended. Talk
// is called once they are kept, if the process has a control socket.
func attend(ctx context.Context, p Process, s container.Sandbox, h spec.Host, talk func()) (Exit, error) {
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

// start hands over what the host has of a sandbox, with which it can begin.
func (p Process) start(conn net.Conn, workspace *os.File) {
	if p.Workspace != nil {
		p.Workspace(workspace, nil)
	} else {
		workspace.Close()
	}
	p.Control(conn)
}

// explainStart says why a sandbox could not be started, if the host is to blame.
func explainStart(err error) error {
	var s *container.StartError
	if !errors.As(err, &s) {
		return err
	}
	return doctor.ExplainStart(s.Err, s.Host, s.Dir, s.Root)
}

// closeFiles closes our copies; closing a file twice does no harm.
func (p Process) closeFiles() {
	for _, f := range []*os.File{p.Stdout, p.Stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// Keep makes the runtime start sandboxes ahead of their use from now on.
func (r *Runtime) Keep(w PoolOptions) {
	r.pool.SetOptions(w)
}

// Warm begins to make ready for p, whose streams are not needed. It returns at
// once.
func (r *Runtime) Warm(p Process) {
	r.engine.Go(func() {
		if h, err := r.engine.Host(); err == nil {
			r.pool.Prepare(p.sandboxed(r.uid, r.gid), h)
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
