package bridge

import (
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/oci"
)

// hostSandboxes start none: they run the host's python3, so that the bridge is
// tested without any privilege.
type hostSandboxes struct{ dir string }

func (h hostSandboxes) Start(ctx context.Context, p oci.Process) (Sandbox, error) {
	if p.Stdin != nil {
		defer p.Stdin.Close()
	}
	defer p.Stdout.Close()
	defer p.Stderr.Close()
	if err := bridgetest.Compile(p.Args[0], p.Binds[0].Source); err != nil {
		return nil, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	args := slices.Clone(p.Args)
	args[len(args)-1] = p.Binds[0].Source
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr, c.ExtraFiles = h.dir, p.Env, p.Stdout, p.Stderr, []*os.File{theirs}
	if p.Stdin != nil {
		c.Stdin = p.Stdin
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	sb := startFake(ctx, func(ctx context.Context, _ <-chan int) (oci.Exit, error) {
		defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })()
		_ = c.Wait()
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // a pid namespace would end with its first process
		ws := c.ProcessState.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			return oci.Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}, nil
		}
		return oci.Exit{Code: ws.ExitStatus()}, nil
	})
	sb.conn, sb.process = conn, c.Process
	return sb, nil
}

// A fakeSandbox is the handle of a function that runs in place of a sandbox.
type fakeSandbox struct {
	conn     net.Conn
	process  *os.Process // that is signaled, if there is one
	finished chan int
	kill     context.CancelFunc
	ended    chan struct{} // then exit and err are known
	exit     oci.Exit
	err      error
}

// startFake runs a function until ctx ends. It is given what Finished is.
func startFake(ctx context.Context, run func(ctx context.Context, finished <-chan int) (oci.Exit, error)) *fakeSandbox {
	ctx, kill := context.WithCancel(ctx)
	f := &fakeSandbox{finished: make(chan int, 1), kill: kill, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.exit, f.err = run(ctx, f.finished)
	}()
	return f
}

func (f *fakeSandbox) Conn() net.Conn                { return f.conn }
func (f *fakeSandbox) Workspace() *os.File           { return nil }
func (f *fakeSandbox) Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (f *fakeSandbox) Finished(code int) { f.finished <- code }

func (f *fakeSandbox) Freeze() { f.signal(syscall.SIGSTOP) }
func (f *fakeSandbox) Thaw()   { f.signal(syscall.SIGCONT) }

func (f *fakeSandbox) AddHeld(d time.Duration) {
	var limit unix.Rlimit
	if f.process == nil || unix.Prlimit(f.process.Pid, unix.RLIMIT_LOCKS, nil, &limit) != nil {
		return
	}
	if limit.Cur == unix.RLIM_INFINITY {
		limit.Cur = 0
	}
	limit.Cur += uint64(d.Microseconds())
	_ = unix.Prlimit(f.process.Pid, unix.RLIMIT_LOCKS, &limit, nil)
}

// signal sends a signal to all that the process has started.
func (f *fakeSandbox) signal(sig syscall.Signal) {
	if f.process != nil {
		_ = syscall.Kill(-f.process.Pid, sig)
	}
}

func (f *fakeSandbox) Signal(sig syscall.Signal) {
	if f.process != nil {
		_ = f.process.Signal(sig)
	}
}

func (f *fakeSandbox) Wait() (oci.Exit, error) {
	<-f.ended
	return f.exit, f.err
}

func (f *fakeSandbox) Close() error {
	f.kill()
	<-f.ended
	if f.conn != nil {
		f.conn.Close()
	}
	return f.err
}

// A startFunc is Sandboxes that are one function.
type startFunc func(ctx context.Context, p oci.Process) (Sandbox, error)

func (f startFunc) Start(ctx context.Context, p oci.Process) (Sandbox, error) { return f(ctx, p) }

// exitsAfter starts sandboxes without a runner that end when run returns.
func exitsAfter(run func(p oci.Process) oci.Exit) Sandboxes {
	return startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
		return startFake(ctx, func(context.Context, <-chan int) (oci.Exit, error) {
			if p.Stdin != nil {
				defer p.Stdin.Close()
			}
			defer p.Stdout.Close()
			defer p.Stderr.Close()
			return run(p), nil
		}), nil
	})
}

// withExit changes how the sandboxes of inner end.
func withExit(inner Sandboxes, change func(exit oci.Exit, err error) (oci.Exit, error)) Sandboxes {
	return startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
		sb, err := inner.Start(ctx, p)
		return changedExit{sb, change}, err
	})
}

type changedExit struct {
	Sandbox
	change func(exit oci.Exit, err error) (oci.Exit, error)
}

func (c changedExit) Wait() (oci.Exit, error) { return c.change(c.Sandbox.Wait()) }
