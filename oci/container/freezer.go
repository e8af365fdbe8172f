package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
)

// A Freezer stops everything in a sandbox but pid 1: between the runs of a session,
// and while the user is asked about a call. It costs nothing before it is used.
//
// pid 1 goes on: it ends the sandbox when the host is gone. So with cgroup v2 all
// others move to a frozen cgroup below the sandbox's. Elsewhere pid 1 stops them by
// signals, which the code sees, and with effort can resist. In the freezer of cgroup
// v1 SIGKILL would wait until someone thaws it.
type Freezer struct {
	s       Sandbox
	line    pid1.Lifeline
	cgroups bool // the host has cgroups that freeze
	// timeout bounds the moving of processes that start others meanwhile.
	timeout time.Duration

	mu      sync.Mutex
	dir     string // the cgroup that is frozen; "" before its first use
	stopped bool   // pid 1 was told to stop processes
}

// NewFreezer returns the freezer of a sandbox. It is used once the program has begun.
func NewFreezer(s Sandbox, line pid1.Lifeline, c host.Cgroup) *Freezer {
	return &Freezer{s: s, line: line, cgroups: c.Freezes(), timeout: 100 * time.Millisecond}
}

// Freeze stops the processes. They may go on for a moment after it has returned.
func (f *Freezer) Freeze() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cgroups && f.freezeCgroup() == nil {
		return nil
	}
	// The sandbox has no cgroup, or what is in there starts processes faster than they
	// can be moved.
	f.stopped = true
	return f.line.Stop()
}

// Thaw lets the processes go on.
func (f *Freezer) Thaw() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		err = f.setFrozen("0")
	}
	if f.stopped {
		f.stopped = false
		err = errors.Join(err, f.line.Continue())
	}
	return err
}

// Still reports whether every process but pid 1 has come to a stop. What continues one
// by then is the kernel, as a parent ends, and pid 1 stops it again (pid1.c).
func (f *Freezer) Still() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return allStopped(f.s.PID())
	}
	events, err := os.ReadFile(filepath.Join(f.dir, "cgroup.events"))
	return err == nil && host.Number(events, "frozen") == 1
}

func (f *Freezer) setFrozen(state string) error {
	return os.WriteFile(filepath.Join(f.dir, "cgroup.freeze"), []byte(state), 0)
}

// freezeCgroup freezes the cgroup, and moves the processes that are not in it yet.
// What a process of it starts is in it too, so later there is none to move.
func (f *Freezer) freezeCgroup() error {
	if f.dir == "" {
		m, err := f.s.Cgroup()
		if err != nil {
			return err
		}
		dir := filepath.Join(m.Path(""), "program") // removed with that of the sandbox
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		f.dir = dir
	}
	if err := f.setFrozen("1"); err != nil {
		return err
	}
	return f.moveProcesses()
}

// moveProcesses moves every process but pid 1. A process that was moved starts no
// other; those that are not there yet may.
func (f *Freezer) moveProcesses() error {
	pid1 := strconv.Itoa(f.s.PID())
	from, to := filepath.Join(filepath.Dir(f.dir), "cgroup.procs"), filepath.Join(f.dir, "cgroup.procs")
	target, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer target.Close()
	for end := time.Now().Add(f.timeout); ; {
		procs, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		left := 0
		for pid := range strings.FieldsSeq(string(procs)) {
			if pid != pid1 {
				left++
				_, _ = target.WriteString(pid) // it may have ended
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes are not frozen", left)
		}
	}
}
