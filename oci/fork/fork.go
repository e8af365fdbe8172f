// Package fork starts Python programs ahead of their use: a template is a
// sandbox that runs only our own program and the modules that the user wants
// preloaded, and standby sandboxes are forked from it. If forking is not
// possible, the program waits in a container of its own. fork.py serves both
// inside.
package fork

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A fork is a sandbox that was forked from a template (fork.py).
type fork struct {
	t         *Template
	host      int      // pid of its pid 1, here
	pidfd     *os.File // of the same; unlike a pid it is never reused
	line      pid1.Lifeline
	conn      *net.UnixConn
	workspace *os.File        // the standby sandbox owns it
	manager   cgroups.Manager // nil where there is no cgroup
	memory    *oomWatch       // with cgroup v1
	slot      *cgroupSlot     // nil where there is no cgroup
	uid       *host.IDSlot    // of the code on the host; nil if it is the template's
}

// Fork makes a sandbox in which the program waits for its streams; now means that a run is
// already waiting for it.
func (t *Template) Fork(now bool) (*container.Standby, error) {
	f, err := t.forkSandbox(now)
	if err != nil {
		return nil, err
	}
	return &container.Standby{
		Sandbox: f, Lifeline: f.line, Conn: f.conn, Workspace: f.workspace,
		Runtime: t.containers, Alive: func() bool { return !t.Gone() }, Forked: true,
	}, nil
}

// forkSandbox is the host's part of become_sandbox in fork.py.
func (t *Template) forkSandbox(now bool) (_ *fork, err error) {
	if !t.addFork() {
		return nil, errors.New("the template has ended")
	}
	f := &fork{t: t, uid: t.containers.AcquireUID(t.h.ForkUIDs())}
	defer func() {
		if err != nil {
			if f.workspace != nil {
				f.workspace.Close()
			}
			_ = f.Destroy()
			err = fmt.Errorf("forking from the template: %w", err)
		}
	}()
	defer contain.Error("forking a sandbox", &err)
	if f.line, err = pid1.NewLifeline(); err != nil {
		return nil, err
	}
	_ = f.line.Ours.SetDeadline(time.Now().Add(forkTimeout))
	if err := f.requestFork(now); err != nil {
		return nil, err
	}
	if err := f.confine(); err != nil {
		return nil, err
	}
	if _, err := f.line.Ours.Write([]byte("g")); err != nil {
		return nil, err
	}
	if f.conn, f.workspace, err = f.line.Receive(); err != nil {
		return nil, err
	}
	_ = f.conn.SetDeadline(time.Now().Add(forkTimeout))
	if err := awaitByte(f.conn, 'w'); err != nil {
		return nil, fmt.Errorf("waiting for the program: %w", err)
	}
	_ = f.conn.SetDeadline(time.Time{})
	_ = f.line.Ours.SetDeadline(time.Time{})
	return f, nil
}

// requestFork asks the template for a fork, and opens a pidfd of its pid 1.
func (f *fork) requestFork(now bool) error {
	raw, err := f.line.Ours.SyscallConn()
	if err != nil {
		return err
	}
	pass := func(on int) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, on)
		}), err)
	}
	if err := pass(1); err != nil {
		return fmt.Errorf("asking for credentials: %w", err)
	}
	if err := f.t.sendForkRequest(f.line.Theirs, f.insideUID(), now); err != nil {
		return err
	}
	data, control := make([]byte, 600), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, size, _, _, err := f.line.Ours.ReadMsgUnix(data, control)
	switch {
	case err != nil:
		return err
	case n > 1 && data[0] == 'e':
		return errors.New(string(data[1:n]))
	case n != 1 || data[0] != 'h':
		return errors.New("the template has ended")
	}
	// The kernel translates the pid to our namespace.
	messages, err := syscall.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return errors.New("no credentials came")
	}
	who, err := syscall.ParseUnixCredentials(&messages[0])
	if err != nil {
		return err
	}
	f.host = int(who.Pid)
	fd, err := unix.PidfdOpen(f.host, unix.O_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	f.pidfd = os.NewFile(uintptr(fd), "pidfd")
	// Only that process has the other end. While it is open, the pid is not reused.
	if hungUp(raw) {
		return errors.New("it ended at once")
	}
	return pass(0)
}

func hungUp(raw syscall.RawConn) (gone bool) {
	err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 0)
		gone = err != nil || n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return err != nil || gone
}

// insideUID returns the fork's ID inside the template.
func (f *fork) insideUID() uint32 {
	if f.uid == nil {
		return f.t.h.InsideUID
	}
	return spec.FirstForkUID + uint32(f.uid.ID-f.t.h.ForkUIDs().Start)
}

// sendForkRequest asks the template for a fork with this lifeline and ID.
func (t *Template) sendForkRequest(lifeline *os.File, uid uint32, now bool) error {
	t.requests.Lock()
	defer t.requests.Unlock()
	t.made++
	order := []byte{'f'}
	if now {
		order[0] = 'n'
	}
	_, _, err := t.Conn.WriteMsgUnix(binary.BigEndian.AppendUint32(order, uid), unix.UnixRights(int(lifeline.Fd())), nil)
	lifeline.Close()
	return err
}

// confine puts the fork into a cgroup of its own, as libcontainer does with its
// containers, while it still runs only our own code.
func (f *fork) confine() error {
	t := f.t
	if t.h.Cgroup.Driver != host.CgroupNone {
		config, m, err := f.acquireSlot()
		if err != nil {
			return fmt.Errorf("preparing the cgroup: %w", err)
		}
		f.manager = m
		if err := m.Apply(f.host); err != nil {
			return fmt.Errorf("making the cgroup: %w", err)
		}
		if err := m.Set(config.Resources); err != nil {
			return fmt.Errorf("setting the limits: %w", err)
		}
		if !t.h.Cgroup.V2 && t.h.Cgroup.Memory {
			if err := container.LimitSocketBuffers(m, t.p.Limits); err != nil {
				return err
			}
			if f.memory, err = newOOMWatch(m.Path("memory")); err != nil {
				return fmt.Errorf("watching the memory limit: %w", err)
			}
		}
	}
	// Without a limit, it runs on the template's processors.
	if cpus := t.p.Limits.CPUs; cpus > 0 && !t.h.Cgroup.CPU {
		return t.containers.Pin(f.host, cpus)
	}
	return nil
}

func (f *fork) PID() int { return f.host }

func (f *fork) Kill() {
	if raw, err := f.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// Wait returns when pid 1 has reported that it is the last process, or was
// killed.
func (f *fork) Wait() (container.Exit, error) {
	var status [1]byte
	if n, _ := f.line.Ours.Read(status[:]); n == 1 {
		return container.Exit{Code: int(status[0])}, nil
	}
	// pid 1 reports this before it ends, unless it is killed.
	if err := f.awaitEnd(); err != nil {
		return container.Exit{}, err
	}
	return container.Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL}, nil
}

// awaitEnd waits until pid 1, and with it everything else, is gone.
func (f *fork) awaitEnd() error {
	raw, err := f.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	_ = f.pidfd.SetReadDeadline(time.Now().Add(forkTimeout))
	return raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return err == nil && n > 0
	})
}

func (f *fork) Cgroup() (cgroups.Manager, error) {
	if f.manager == nil {
		return nil, errors.New("there is no cgroup")
	}
	return f.manager, nil
}

// CgroupPersists: pid 1 waits until we have asked.
func (f *fork) CgroupPersists() bool { return true }

// OOM is only needed with cgroup v1: the counter of v2 can be read at the end.
func (f *fork) OOM() (<-chan struct{}, error) {
	if f.memory == nil {
		return nil, errors.New("there is nothing to be told")
	}
	return f.memory.hit, nil
}

// Destroy ends the fork and removes its cgroup.
func (f *fork) Destroy() (err error) {
	if f.line.Ours != nil {
		f.line.Close()
	}
	if f.conn != nil {
		f.conn.Close()
	}
	if f.pidfd != nil {
		f.Kill()
		if err := f.awaitEnd(); err != nil {
			return fmt.Errorf("waiting for the end of the sandbox: %w", err)
		}
		f.pidfd.Close()
	}
	if f.memory != nil {
		f.memory.close()
	}
	if f.manager != nil {
		err = container.RetryRemove(f.manager.Destroy)
	}
	if f.slot != nil && err == nil {
		err = f.t.cgroups.releaseSlot(f.slot)
	}
	if err == nil {
		f.uid.Release()
	}
	f.t.removeFork()
	return err
}

// awaitByte reads one byte and fails if it is not the one wanted.
func awaitByte(c net.Conn, want byte) error {
	var b [1]byte
	if _, err := c.Read(b[:]); err != nil {
		return err
	}
	if b[0] != want {
		return fmt.Errorf("%q came, not %q", b[0], want)
	}
	return nil
}

var (
	_ container.Sandbox = (*fork)(nil)
	_ container.Sandbox = (*container.Container)(nil)
)
