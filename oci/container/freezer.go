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

// A Freezer stops all processes in a sandbox except pid 1: between the runs of a session,
// and while the user is asked about a call. It costs nothing until it is used.
//
// pid 1 keeps running, to end the sandbox when the host is gone. So with cgroup v2 the
// others move to a frozen cgroup below the sandbox's. Without it, pid 1 stops them with
// signals, which code can see and, with effort, resist. In the freezer of cgroup v1, a
// SIGKILL would be delayed until the cgroup is thawed.
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

// NewFreezer returns the freezer of a sandbox. It must not be used before the program has
// started.
func NewFreezer(s Sandbox, line pid1.Lifeline, c host.Cgroup) *Freezer {
	return &Freezer{s: s, line: line, cgroups: c.Freezes(), timeout: 100 * time.Millisecond}
}

// Freeze stops the processes. They may run for a moment after it has returned.
func (f *Freezer) Freeze() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cgroups && f.freezeCgroup() == nil {
		return nil
	}
	// The sandbox has no cgroup, or starts processes faster than they can be moved.
	f.stopped = true
	return f.line.Stop()
}

// Thaw continues the processes.
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

// Still reports whether every process except pid 1 has stopped. If the kernel later
// continues one because its parent ends, pid 1 stops it again (pid1.c).
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

// freezeCgroup freezes the cgroup and moves the processes that are not in it yet. Their
// children start in it, so the next time there are none to move.
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

// moveProcesses moves every process except pid 1. A moved process cannot start others; the
// rest still can.
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
