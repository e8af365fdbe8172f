package oci

// The first process of a sandbox is this program again, as a small init
// written in C (pid1.c): it starts the program to run as its child, collects
// zombies, ends with it, and ends when the host is gone. A program of the
// user's would have to do all that itself, and as pid 1 with the code's own
// user id it could be read and changed by the code.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

import "C" // for pid1.c

// pid1Path is where a sandbox sees this program.
const pid1Path = ownDir + "/init"

// pid1Env makes pid1.c act; its value is "descriptor:control": where the
// lifeline is, and 1 if the program is to have a control socket in its place.
const pid1Env = "_TOOLCELL_PID1"

// controlFD is the lifeline's descriptor at first, and then the control
// socket's.
const controlFD = 3

// pid1Name is what pid 1 calls itself once it is where it stays (proc(5), comm).
const pid1Name = "toolcell"

// A lifeline is a socket pair of which pid 1 has an end. When the host ends, in
// whatever way, so does the other end, and then the sandbox. (libcontainer's
// ParentDeathSignal does nothing for it.)
type lifeline struct {
	ours   *net.UnixConn
	theirs *os.File
}

func newLifeline() (l lifeline, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making the lifeline of a sandbox: %w", err)
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return l, os.NewSyscallError("socketpair", err)
	}
	if l.ours, err = unixConn(pair[0]); err != nil {
		unix.Close(pair[1])
		return l, err
	}
	l.theirs = os.NewFile(uintptr(pair[1]), "lifeline")
	return l, nil
}

// unixConn makes a connection of a socket's descriptor, which it takes over.
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

// receive takes in the control socket that pid 1 has made. It fails if pid 1
// ends before.
func (l lifeline) receive() (*net.UnixConn, error) {
	data, control := make([]byte, 600), make([]byte, unix.CmsgSpace(4))
	size, n, _, _, err := l.ours.ReadMsgUnix(data, control)
	if err != nil {
		return nil, err
	}
	if size > 1 && data[0] == 'e' {
		return nil, errors.New(string(data[1:size]))
	}
	messages, err := syscall.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("pid 1 sent no socket")
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("pid 1 sent no socket")
	}
	unix.CloseOnExec(fds[0])
	return unixConn(fds[0])
}

func (l lifeline) close() {
	l.ours.Close()
	l.theirs.Close()
}

// program gives the path of this program for sandboxes to start from. It is
// the file we run from, as long as that is still there and every user may
// execute it; otherwise a copy in dir. An upgrade may have replaced the file, and the
// parts of two versions do not fit together.
func (r *Runtime) program(dir string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := os.Stat(r.copied); r.copied != "" && err == nil {
		return r.copied, nil
	}
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program's file: %w", err)
	}
	file, err := os.Stat(r.host.Exe)
	if err == nil && os.SameFile(running, file) && file.Mode().Perm()&0o005 == 0o005 {
		return r.host.Exe, nil
	}
	copied := filepath.Join(dir, "init")
	if err := copyProgram(copied); err != nil {
		return "", fmt.Errorf("copying this program for sandboxes: %w", err)
	}
	r.copied = copied
	return copied, nil
}

// copyProgram copies the program that we run from, also if its file is gone.
func copyProgram(to string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return err
	}
	if _, err = f.ReadFrom(from); err == nil {
		err = f.Chmod(0o755) // the sandbox's user runs it, whatever our umask is
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(to)
	}
	return err
}
