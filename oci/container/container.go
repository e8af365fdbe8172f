// Package container starts sandboxes with libcontainer and removes those left
// behind by servers that were killed. It provides what every sandbox needs from
// the host: its state folder, its /workspace, its processors and signals to its
// program.
//
// libcontainer starts this program again as the inside of a sandbox. The hook
// for that is in init.go, so every binary that imports this package has it.
package container

import (
	"fmt"
	"maps"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/pid1"
	"golang.org/x/sys/unix"
)

// A Sandbox is a started sandbox: a container of libcontainer or a fork of a template.
type Sandbox interface {
	limits.Sandbox
	// Wait returns once everything in it has ended, except perhaps pid 1.
	Wait() (Exit, error)
	// CgroupPersists reports whether the cgroup outlives Wait, even one of
	// systemd's, unless the first process was killed.
	CgroupPersists() bool
	Destroy() error // removes its processes, cgroup and state
}

// A Container is a sandbox that libcontainer made.
type Container struct {
	c       *libcontainer.Container
	process *libcontainer.Process
	uid     *host.IDSlot // of the code on the host; nil if it is shared

	cgroup    cgroups.Manager // only to look at it: libcontainer has another, and removes it
	cgroupErr error
}

func newContainer(c *libcontainer.Container, process *libcontainer.Process, uid *host.IDSlot) *Container {
	s := &Container{c: c, process: process, uid: uid}
	s.cgroup, s.cgroupErr = cgroupOf(c)
	return s
}

// PID returns the id of the first process on the host, 0 if there is none.
func (s *Container) PID() int {
	pid, err := s.process.Pid()
	if err != nil {
		return 0
	}
	return pid
}

// Kill ends the first process, and with it the sandbox.
func (s *Container) Kill() { _ = s.c.Signal(unix.SIGKILL) }

// Wait returns when the first process has ended.
func (s *Container) Wait() (Exit, error) {
	state, err := s.process.Wait()
	if state == nil {
		return Exit{}, err
	}
	e := Exit{Code: state.ExitCode()}
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		e.Signal = ws.Signal()
		e.Code = 128 + int(e.Signal)
	}
	return e, nil
}

// Cgroup returns a manager of the container's cgroup.
func (s *Container) Cgroup() (cgroups.Manager, error) { return s.cgroup, s.cgroupErr }

// cgroupOf returns a manager of a container's cgroup. It has a copy of the paths, made while nothing else
// uses them: libcontainer's own manager deletes from its map as it removes the cgroup, and others may look
// at the cgroup then. Go ends a process that reads a map while another goroutine writes to it.
func cgroupOf(c *libcontainer.Container) (cgroups.Manager, error) {
	state, err := c.State()
	if err != nil {
		return nil, err
	}
	config := c.Config()
	return manager.NewWithPaths(config.Cgroups, maps.Clone(state.CgroupPaths))
}

// CgroupPersists reports whether the cgroup outlives the sandbox.
func (s *Container) CgroupPersists() bool { return false }

// OOM returns a channel that reports out-of-memory kills.
func (s *Container) OOM() (<-chan struct{}, error) { return s.c.NotifyOOM() }

// Destroy removes the container's processes, cgroup and state.
func (s *Container) Destroy() error {
	err := destroy(s.c)
	if err == nil {
		s.uid.Release()
	}
	return err
}

// destroy removes a container's processes, its cgroup and its state.
func destroy(c *libcontainer.Container) error {
	_ = c.Signal(unix.SIGKILL) // an error means that it is not running, as wanted
	return RetryRemove(c.Destroy)
}

// RetryRemove removes a cgroup. It retries for up to two seconds, since the
// kernel may still hold it for a moment.
func RetryRemove(remove func() error) (err error) {
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		if err = remove(); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("removing the sandbox: %w", err)
}

// An Exit is how a sandbox ended.
type Exit struct {
	Code   int         // of the first process; 128+n if signal n ended it
	Signal unix.Signal // that ended it, or 0
	OOM    bool        // the memory limit was hit and something was killed
	PIDs   bool        // the limit on processes was hit: new ones were refused
}

// A Started is a sandbox with the host's ends of what leads into it.
type Started struct {
	Sandbox
	Lifeline pid1.Lifeline
	Conn     *net.UnixConn // to the program, which has the other end as descriptor 3, or nil
	// Workspace is the sandbox's /workspace (pid1.Lifeline.Receive), nil without Conn.
	Workspace *os.File
	// Watch already enforces its limits, if modules that it has imported could exceed them;
	// otherwise nil.
	Watch *limits.Watch
}

// A Standby is a started sandbox whose program waits for its streams. It is used once. It
// closes its Lifeline; its Workspace belongs to the caller once Attach has succeeded.
type Standby struct {
	Started
	Alive   func() bool // it has not ended
	Forked  bool        // from a template
	Runtime *Runtime
}

// Attach gives the program its streams, with which it begins. If the sandbox has ended,
// Attach discards it and returns an error; no part of the run has happened then.
func (s *Standby) Attach(streams Streams) error {
	// Fd sets them to blocking mode, which programs expect.
	fds := []int{int(streams.Stdout.Fd()), int(streams.Stderr.Fd())}
	if streams.Stdin != nil {
		fds = append(fds, int(streams.Stdin.Fd()))
	}
	_, _, err := s.Conn.WriteMsgUnix([]byte("s"), unix.UnixRights(fds...), nil)
	if err != nil {
		s.Discard()
		return fmt.Errorf("handing a standby sandbox its streams: %w", err)
	}
	return nil
}

// Discard removes it in the background.
func (s *Standby) Discard() {
	if s.Workspace != nil {
		s.Workspace.Close()
	}
	s.Runtime.Later(0, func() { _ = s.Destroy() }) // the next start sweeps what this cannot remove
}

// AfterAnswer delays the cleanup of a run, so that it does not compete with the
// answer for the processor.
const AfterAnswer = time.Millisecond
