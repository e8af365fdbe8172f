package oci

import (
	"fmt"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"
)

// A sandbox is one that has started, in either way: a container of
// libcontainer's, or a fork of a template.
type sandbox interface {
	pid() int // of its first process
	kill()    // ends everything in it
	// wait returns once everything in it has ended; only a pid 1 of ours may be
	// left.
	wait() (Exit, error)
	cgroup() (cgroups.Manager, error)
	// counter reads what a controller of its cgroup counts (counterOf).
	counter(controller string) ([]byte, error)
	// lasts says that the cgroup is still there after wait, also if it is
	// systemd's, unless the first process was killed.
	lasts() bool
	// oom tells each time that the memory limit is hit, and is closed when the
	// cgroup is gone. It is needed with cgroup v1, and where systemd removes
	// the cgroup before it can be asked.
	oom() (<-chan struct{}, error)
	destroy() error // removes what is left of it
}

// A container is a sandbox that libcontainer made.
type container struct {
	c       *libcontainer.Container
	process *libcontainer.Process
}

func (s *container) pid() int {
	pid, err := s.process.Pid()
	if err != nil {
		return 0
	}
	return pid
}

func (s *container) kill() { _ = s.c.Signal(unix.SIGKILL) }

func (s *container) wait() (Exit, error) {
	state, err := s.process.Wait()
	if state == nil {
		return Exit{}, err
	}
	e := Exit{Code: state.ExitCode()}
	if ws := state.Sys().(interface {
		Signaled() bool
		Signal() unix.Signal
	}); ws.Signaled() {
		e.Signal = ws.Signal()
		e.Code = 128 + int(e.Signal)
	}
	return e, nil
}

func (s *container) counter(controller string) ([]byte, error) {
	m, err := s.cgroup()
	if err != nil {
		return nil, err
	}
	return readCounter(m, controller)
}

func (s *container) cgroup() (cgroups.Manager, error) {
	state, err := s.c.State()
	if err != nil {
		return nil, err
	}
	config := s.c.Config()
	return manager.NewWithPaths(config.Cgroups, state.CgroupPaths)
}

func (s *container) lasts() bool { return false }

func (s *container) oom() (<-chan struct{}, error) { return s.c.NotifyOOM() }

func (s *container) destroy() error { return destroy(s.c) }

// destroy removes what is left of a container: every process, its cgroup and
// its state.
func destroy(c *libcontainer.Container) error {
	_ = c.Signal(unix.SIGKILL) // not running is what we want
	return remove(c)
}

// remove removes the cgroup and the state of a container without processes.
func remove(c *libcontainer.Container) error { return insist(c.Destroy) }

// insist removes a cgroup, of which the kernel may need a moment to let go.
func insist(remove func() error) (err error) {
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		if err = remove(); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("removing the sandbox: %w", err)
}
