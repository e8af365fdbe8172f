package bridgetest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/limits"
)

// HostSandboxes start none: they run the host's python3, so that no privilege is needed.
type HostSandboxes struct{ Dir string }

// Start runs the process as this user, in a process group of its own.
func (h HostSandboxes) Start(ctx context.Context, p oci.Process) (*FakeSandbox, error) {
	if p.Stdin != nil {
		defer p.Stdin.Close()
	}
	defer p.Stdout.Close()
	defer p.Stderr.Close()
	if err := Compile(p.Args[0], p.Binds[0].Source); err != nil {
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
	c.Dir, c.Env, c.Stdout, c.Stderr, c.ExtraFiles = h.Dir, p.Env, p.Stdout, p.Stderr, []*os.File{theirs}
	if p.Stdin != nil {
		c.Stdin = p.Stdin
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	sb := StartFake(ctx, func(ctx context.Context, _ <-chan int) (oci.Exit, error) {
		defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })()
		_ = c.Wait()
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // a pid namespace would end with its first process
		ws := c.ProcessState.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			return oci.Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}, nil
		}
		return oci.Exit{Code: ws.ExitStatus()}, nil
	})
	sb.Socket, sb.Process = conn, c.Process
	return sb, nil
}

// A FakeSandbox is the handle of a function that runs in place of a sandbox.
type FakeSandbox struct {
	Socket   net.Conn
	Process  *os.Process // that is signaled, if there is one
	finished chan int
	kill     context.CancelFunc
	ended    chan struct{} // then exit and err are known
	exit     oci.Exit
	err      error
}

// StartFake runs a function until ctx ends. It is given what Finished is.
func StartFake(ctx context.Context, run func(ctx context.Context, finished <-chan int) (oci.Exit, error)) *FakeSandbox {
	ctx, kill := context.WithCancel(ctx)
	f := &FakeSandbox{finished: make(chan int, 1), kill: kill, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.exit, f.err = run(ctx, f.finished)
	}()
	return f
}

// Origin says that it was started for its process.
func (f *FakeSandbox) Origin() string { return oci.Cold }

// Conn returns Socket.
func (f *FakeSandbox) Conn() net.Conn { return f.Socket }

// Workspace returns nil: there is none.
func (f *FakeSandbox) Workspace() *os.File { return nil }

// Listen listens on the loopback of this host.
func (f *FakeSandbox) Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// ListenAt makes nothing: ports below 1024 are the host's.
func (f *FakeSandbox) ListenAt(_, _ []netip.AddrPort) ([]net.PacketConn, []net.Listener, error) {
	return nil, nil, errors.New("a fake sandbox has no network of its own")
}

// Resolve does nothing.
func (f *FakeSandbox) Resolve(bool) error { return nil }

// Finished takes the exit code of code that has ended.
func (f *FakeSandbox) Finished(code int) { f.finished <- code }

// Freeze stops the processes.
func (f *FakeSandbox) Freeze() { f.signal(syscall.SIGSTOP) }

// Thaw lets them go on.
func (f *FakeSandbox) Thaw() { f.signal(syscall.SIGCONT) }

// AddHeld adds to what the processes are told of the time that they stood still (looptime.py).
func (f *FakeSandbox) AddHeld(d time.Duration) {
	var limit unix.Rlimit
	if f.Process == nil || unix.Prlimit(f.Process.Pid, unix.RLIMIT_LOCKS, nil, &limit) != nil {
		return
	}
	if limit.Cur == unix.RLIM_INFINITY {
		limit.Cur = 0
	}
	limit.Cur += uint64(d.Microseconds())
	_ = unix.Prlimit(f.Process.Pid, unix.RLIMIT_LOCKS, &limit, nil)
}

// signal sends a signal to all that the process has started.
func (f *FakeSandbox) signal(sig syscall.Signal) {
	if f.Process != nil {
		_ = syscall.Kill(-f.Process.Pid, sig)
	}
}

// Signal sends a signal to Python.
func (f *FakeSandbox) Signal(sig syscall.Signal) {
	if f.Process != nil {
		_ = f.Process.Signal(sig)
	}
}

// Wait waits for the end.
func (f *FakeSandbox) Wait() (oci.Exit, error) {
	<-f.ended
	return f.exit, f.err
}

// Close ends the sandbox.
func (f *FakeSandbox) Close() error {
	f.kill()
	<-f.ended
	if f.Socket != nil {
		f.Socket.Close()
	}
	return f.err
}

// Usage is not known.
func (f *FakeSandbox) Usage() limits.Usage { return limits.Usage{} }
