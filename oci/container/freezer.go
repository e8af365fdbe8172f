package container

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
)

// A Freezer stops the program of a sandbox, and everything that it started, between
// the runs of a session.
//
// pid 1 goes on: it ends the sandbox when the host is gone. So with cgroup v2 the
// program gets a cgroup of its own below the sandbox's. Elsewhere pid 1 stops it by
// signals, which the code sees, and with effort can resist. In the freezer of cgroup
// v1 SIGKILL would wait until someone thaws it.
type Freezer struct {
	state string // cgroup.freeze of the program's cgroup; "" if pid 1 has to stop it
	line  pid1.Lifeline
}

// NewFreezer returns the freezer of a sandbox whose program has begun and runs no
// code of the user's yet.
func NewFreezer(s Sandbox, line pid1.Lifeline, c host.Cgroup) *Freezer {
	f := &Freezer{line: line}
	if c.Freezes() {
		if dir, err := moveProgram(s); err == nil {
			f.state = filepath.Join(dir, "cgroup.freeze")
		}
		// Otherwise it has ended, or cannot have a cgroup: signals do as well.
	}
	return f
}

// moveProgram moves the program to a new cgroup below that of its sandbox, which
// is removed with it.
func moveProgram(s Sandbox) (dir string, err error) {
	m, err := s.Cgroup()
	if err != nil {
		return "", err
	}
	program, err := awaitFirstChild(s.PID())
	if err != nil {
		return "", err
	}
	dir = filepath.Join(m.Path(""), "program")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(program)), 0)
}

// awaitFirstChild returns the first child of pid 1, which in a fresh container may
// not be there yet.
func awaitFirstChild(pid int) (int, error) {
	for wait := time.Millisecond / 8; ; wait *= 2 {
		child, err := firstChild(pid)
		if err == nil || wait > time.Second || errors.Is(err, os.ErrNotExist) {
			return child, err
		}
		time.Sleep(wait)
	}
}

// Freeze stops the program.
func (f *Freezer) Freeze() error {
	if f.state == "" {
		return f.line.Stop()
	}
	return os.WriteFile(f.state, []byte("1"), 0)
}

// Thaw lets it go on.
func (f *Freezer) Thaw() error {
	if f.state == "" {
		return f.line.Continue()
	}
	return os.WriteFile(f.state, []byte("0"), 0)
}
