package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/limits"
	"golang.org/x/sys/unix"
)

// A Sandbox is the handle of a process that Start has started. It is safe for
// concurrent use.
type Sandbox struct {
	sandbox   container.Started
	stopWatch func() bool        // detaches the sandbox from the context
	kill      context.CancelFunc // ends the context
	freezer   *container.Freezer
	finished  context.Context // ends when Finished is called
	finish    context.CancelCauseFunc
	closeOnce sync.Once

	origin string

	ended chan struct{} // closed once exit and err are known
	exit  Exit
	err   error

	counted chan struct{} // closed once usage is known
	usage   limits.Usage
}

// The ways in which a sandbox has come about.
const (
	Cold     = "cold"    // started for its process
	Standing = "standby" // it was waiting
	Forked   = "fork"    // forked from a Python that had started
)

// Origin returns Cold, Standing or Forked.
func (s *Sandbox) Origin() string { return s.origin }

// Conn returns the host's end of the stream socket that the process has as
// descriptor 3, nil if it has none. Close closes it.
func (s *Sandbox) Conn() net.Conn {
	if s.sandbox.Conn == nil {
		return nil // and not an interface with it
	}
	return s.sandbox.Conn
}

// Workspace returns the sandbox's /workspace as a descriptor to open files below
// (openat(2)), nil if it has no stream socket or ended before it had one. It can
// be read even if the sandbox was killed, until Close closes it.
func (s *Sandbox) Workspace() *os.File { return s.sandbox.Workspace }

// Listen returns a listener on a free port of the sandbox's own loopback, which nothing
// outside the sandbox can reach. The caller closes it. The sandbox must not be frozen.
func (s *Sandbox) Listen() (net.Listener, error) { return s.sandbox.Lifeline.Listen() }

// ListenAt returns sockets for UDP and TCP at addresses of the sandbox's own loopback, also with
// ports below 1024. Those that code uses already are left out. The caller closes them. The
// sandbox must not be frozen. On hosts without a /proc for sandboxes, ports below 1024 cannot be
// had.
func (s *Sandbox) ListenAt(udp, tcp []netip.AddrPort) ([]net.PacketConn, []net.Listener, error) {
	all, err := s.sandbox.Lifeline.ListenAt(udp, tcp)
	return all.Packets, all.Listeners, err
}

// Resolve says in the sandbox's resolv.conf whether there is a name server on 127.0.0.1; at
// first it says that there is none. The file is written by the time that a later Listen or
// ListenAt returns.
func (s *Sandbox) Resolve(names bool) error { return s.sandbox.Lifeline.Resolve(names) }

// Begin lets a server begin (spec.Server): until then it waits, so that its network can be made.
func (s *Sandbox) Begin() error { return s.sandbox.Lifeline.Begin() }

// Signal sends a signal to the process. SIGURG is ignored by default (signal(7)).
func (s *Sandbox) Signal(sig unix.Signal) {
	select {
	case <-s.ended:
	default:
		_ = container.Signal(s.sandbox, sig) // a process that is gone needs no signal
	}
}

// Freeze stops every process in the sandbox, until Thaw or the end of the sandbox. Limits and
// the context remain in force.
func (s *Sandbox) Freeze() {
	if s.freezer.Freeze() == nil { // an error means that the sandbox is gone
		s.sandbox.Watch.Hold(s.freezer.Still)
	}
}

// Thaw continues the processes.
func (s *Sandbox) Thaw() {
	s.sandbox.Watch.Resume()
	_ = s.freezer.Thaw()
}

// AddHeld adds d to the time that the process reads as that of its holds: its soft
// RLIMIT_LOCKS, in microseconds. The sandbox must be frozen.
func (s *Sandbox) AddHeld(d time.Duration) {
	_ = container.AddHeld(s.sandbox, d) // on an error, timers in the code expire early
}

// Finished reports that the process, which was started in advance, has announced its exit
// code, will write nothing more and is the only process left. Wait then returns at once, and
// the rest of the sandbox is killed. Only the first call counts, and only while Wait would
// block.
func (s *Sandbox) Finished(code int) { s.finish(announced(code)) }

// An announced is an exit code, as the cause that Finished ends the waiting with.
type announced int

func (announced) Error() string { return "the process has announced its exit code" }

// Wait returns once every process in the sandbox has ended, and reports how the
// first one ended. It may be called more than once. An error means that the
// sandbox could not be waited for or removed; in the second case the exit is
// valid.
func (s *Sandbox) Wait() (Exit, error) {
	<-s.ended
	return s.exit, s.err
}

// Usage returns what the processes in the sandbox have taken by now, or had when they ended. That of
// one that has ended is known once the sandbox is being removed, moments later.
func (s *Sandbox) Usage() limits.Usage {
	select {
	case <-s.ended:
		select {
		case <-s.counted:
			return s.usage
		case <-time.After(time.Second): // its removal has failed
			return limits.Usage{}
		}
	default:
		return s.sandbox.Watch.Usage()
	}
}

// count notes the usage before the sandbox is removed, and with it what counts.
func (s *Sandbox) count() {
	defer close(s.counted)
	_ = contain.Call("counting what a sandbox took", func() error { s.usage = s.sandbox.Watch.Usage(); return nil })
}

// Close kills the sandbox if it still runs, waits for its end, and closes Conn
// and Workspace. It returns what Wait does, and may be called more than once.
func (s *Sandbox) Close() error {
	s.kill()
	<-s.ended
	s.closeOnce.Do(func() {
		defer contain.Recover("closing a sandbox", nil)
		if s.sandbox.Conn != nil {
			s.sandbox.Conn.Close()
			s.sandbox.Workspace.Close()
		}
	})
	return s.err
}

// supervise waits for the end of the sandbox, then removes it.
func (s *Sandbox) supervise(ctx context.Context, remove func(*Sandbox) error) {
	defer close(s.ended)
	defer contain.Recover("supervising a sandbox", func(err error) {
		s.exit, s.err = killedExit, errors.Join(s.err, err)
		s.kill()
		s.sandbox.Kill()
	})
	exit, err := s.observe(ctx)
	if err != nil {
		exit = killedExit
		_ = contain.Call("ending a sandbox", func() error { s.sandbox.Kill(); return nil })
	}
	s.stopWatch()
	s.kill() // releases the context
	s.exit, s.err = exit, errors.Join(err, contain.Call("removing a sandbox", func() error { return remove(s) }))
}

// An Exit is how a sandbox ended.
type Exit = container.Exit

// killedExit is the exit of a sandbox whose own is unknown: never success.
var killedExit = Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL}

// observe waits for the end of the sandbox and returns how it ended. After an error this is
// unknown, and the sandbox may still run.
func (s *Sandbox) observe(ctx context.Context) (exit Exit, err error) {
	defer contain.Error("waiting for a sandbox", &err)
	exit, persists, err := s.awaitEnd()
	killed := exit.Signal == unix.SIGKILL && ctx.Err() == nil
	oom, pids := s.sandbox.Watch.Report(killed, persists)
	if err = errors.Join(err, s.sandbox.Watch.Err()); err != nil {
		return exit, fmt.Errorf("waiting for the sandbox: %w", err)
	}
	exit.OOM, exit.PIDs = oom, pids
	return exit, nil
}

// awaitEnd waits until the sandbox has ended or Finished was called, and reports whether its
// cgroup certainly still exists.
func (s *Sandbox) awaitEnd() (exit Exit, cgroupPersists bool, err error) {
	exit, err = contain.Await(s.finished, "waiting for the first process of a sandbox", s.sandbox.Wait)
	if code, ok := errors.AsType[announced](err); ok {
		return Exit{Code: int(code)}, true, nil
	}
	return exit, s.sandbox.CgroupPersists() && exit.Signal == 0 && err == nil, err
}
