package oci

// The first process of a sandbox is this program again, as a small init
// written in C (pid1.c): it starts the program to run as its child, collects
// zombies, ends with it, and ends when the host is gone. A program of the
// user's would have to do all that itself, and as pid 1 with the code's own
// user id it could be read and changed by the code.

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

import "C" // for pid1.c

// pid1Path is where a sandbox sees this program.
const pid1Path = ownDir + "/init"

// pid1Env makes pid1.c act; its value is the number of the lifeline's
// descriptor.
const pid1Env = "_RUNCELL_PID1"

// pid1Name is what pid 1 calls itself once it is where it stays (proc(5), comm).
const pid1Name = "runcell"

// A lifeline is a pipe whose reading end pid 1 has. When the host ends, in
// whatever way, so does the writing end, and then the sandbox.
// (libcontainer's ParentDeathSignal does nothing for it.)
type lifeline struct{ ours, theirs *os.File }

func newLifeline() (lifeline, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return lifeline{}, fmt.Errorf("making the lifeline of a sandbox: %w", err)
	}
	return lifeline{ours: ours, theirs: theirs}, nil
}

func (l lifeline) close() {
	l.ours.Close()
	l.theirs.Close()
}

// program gives the path of this program for sandboxes to start from. It is
// the file we run from, as long as that is still there and every user may
// execute it; otherwise a copy. An upgrade may have replaced the file, and the
// parts of two versions do not fit together.
func (r *Runtime) program() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copied != "" {
		return r.copied, nil
	}
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program's file: %w", err)
	}
	file, err := os.Stat(r.host.exe)
	if err == nil && os.SameFile(running, file) && file.Mode().Perm()&0o005 == 0o005 {
		return r.host.exe, nil
	}
	copied := filepath.Join(r.dir, "init")
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
