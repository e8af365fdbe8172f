// Package pid1 is the first process of a sandbox: this program again, as a
// small init written in C (pid1.c). It starts the program to run as its child,
// reaps zombies, ends with it, and ends when the host is gone. As pid 1, the user's program
// would have to do all that itself, and since it has the code's user ID, the code could
// read and change it.
//
// pid1.c acts in a constructor, so every binary that imports this package can be
// started as pid 1; package container, which starts it, has the rest of the hook.
package pid1

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Lifeline is a socket pair between the host and pid 1. When the host ends,
// for whatever reason, its end closes and pid 1 ends the sandbox.
// (libcontainer's ParentDeathSignal does nothing for it.)
type Lifeline struct {
	Ours   *net.UnixConn
	Theirs *os.File // to close once pid 1 has it
}

// NewLifeline makes a Lifeline. The caller closes both ends.
func NewLifeline() (l Lifeline, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making the lifeline of a sandbox: %w", err)
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return l, os.NewSyscallError("socketpair", err)
	}
	if l.Ours, err = unixConn(pair[0]); err != nil {
		unix.Close(pair[1])
		return l, err
	}
	l.Theirs = os.NewFile(uintptr(pair[1]), "lifeline")
	return l, nil
}

// unixConn returns a connection for a socket's descriptor, which it takes over.
func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() // FileConn makes a copy
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a Unix socket")
	}
	return u, nil
}

// Receive returns what pid 1 sends before the program starts: the control
// socket, and the sandbox's /workspace as a descriptor to open files below
// (openat(2)). The caller closes both. The descriptor keeps the folder's files
// readable when the rest of the sandbox is gone. Receive fails if pid 1 ended
// before it sent them; if it sent them and then ended, Receive still succeeds.
func (l Lifeline) Receive() (control *net.UnixConn, workspace *os.File, err error) {
	data, oob := make([]byte, 600), make([]byte, unix.CmsgSpace(2*4))
	size, n, _, _, err := l.Ours.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, nil, err
	}
	if size > 1 && data[0] == 'e' {
		return nil, nil, errors.New(string(data[1:size]))
	}
	fds, err := parseRights(oob[:n], 2)
	if err != nil {
		return nil, nil, err
	}
	workspace = os.NewFile(uintptr(fds[1]), "/workspace")
	if control, err = unixConn(fds[0]); err != nil {
		return nil, nil, errors.Join(err, workspace.Close())
	}
	return control, workspace, nil
}

// parseRights returns the descriptors that came with a message, as many as wanted.
func parseRights(oob []byte, want int) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, errors.New("pid 1 sent no socket")
	}
	fds, err = syscall.ParseUnixRights(&messages[0])
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if err == nil && len(fds) != want {
		err = fmt.Errorf("pid 1 sent %d descriptors, not %d", len(fds), want)
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	return fds, err
}

// Stop makes pid 1 stop every other process with SIGSTOP, and stop those that others continue
// again, until Continue.
func (l Lifeline) Stop() error { return l.order('s') }

// Continue makes pid 1 continue every process.
func (l Lifeline) Continue() error { return l.order('c') }

func (l Lifeline) order(what byte) error {
	_, err := l.Ours.Write([]byte{what})
	return err
}

// listenTimeout bounds the making of a listener by pid 1.
const listenTimeout = 30 * time.Second

// Listen returns a listener on a free port of the sandbox's own loopback, for connections of
// processes in the sandbox. The sandbox must not be stopped.
func (l Lifeline) Listen() (_ net.Listener, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making a listener in the sandbox: %w", err)
		}
	}()
	// The answer comes over a socket of its own: others read the lifeline.
	reply, err := NewLifeline()
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	_, _, err = l.Ours.WriteMsgUnix([]byte{'l'}, unix.UnixRights(int(reply.Theirs.Fd())), nil)
	reply.Theirs.Close()
	if err != nil {
		return nil, err
	}
	_ = reply.Ours.SetReadDeadline(time.Now().Add(listenTimeout))
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := reply.Ours.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	fds, err := parseRights(oob[:n], 1)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close() // FileListener makes a copy
	return net.FileListener(f)
}

// Close closes the ends that are still open.
func (l Lifeline) Close() {
	l.Ours.Close()
	l.Theirs.Close()
}
