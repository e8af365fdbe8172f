package container

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// allStopped reports whether all descendants of a process are stopped or have ended. No
// process of a sandbox can leave the tree of its first one. A process that cannot be read
// does not count as stopped: it may have just ended and its children have moved.
func allStopped(pid int) bool {
	children, err := host.ChildrenOf(pid)
	if err != nil {
		return false
	}
	for _, child := range children {
		if !threadsStopped(child) || !allStopped(child) {
			return false
		}
	}
	return true
}

// threadsStopped reports whether every thread of a process is stopped or has ended. A
// thread in uninterruptible sleep (D), such as the parent of a vfork(2) child that was
// stopped first, runs no more code either once the process has been told to stop.
func threadsStopped(pid int) bool {
	threads, err := host.ThreadsOf(pid)
	if err != nil {
		return false
	}
	stopped, waits := false, ""
	for _, thread := range threads {
		switch stateOf(thread) {
		case 'T', 't':
			stopped = true
		case 'Z', 'X':
		case 'D':
			waits = thread
		default:
			return false
		}
	}
	return waits == "" || stopped || willStop(waits)
}

// stateOf returns the state of a thread (proc_pid_stat(5)), or 0.
func stateOf(thread string) byte {
	stat, err := os.ReadFile(thread + "/stat")
	if err != nil {
		return 0
	}
	// The name before it may have any character.
	_, after, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	if !found || len(after) == 0 {
		return 0
	}
	return after[0]
}

// willStop reports whether a SIGSTOP is pending for a thread, which it handles before it
// runs code again: no process can block or ignore that signal (signal(7)).
func willStop(thread string) bool {
	status, err := os.ReadFile(thread + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		name, mask, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err == nil && pending&(1<<(uint(unix.SIGSTOP)-1)) != 0 {
			return true
		}
	}
	return false
}

// Signal sends a signal to the program of s, the first child of its pid 1.
func Signal(s Sandbox, sig unix.Signal) error {
	pid1 := s.PID()
	child, err := firstChild(pid1)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	// The pid may have been reused in between. The pidfd is the child's if that pid is still
	// the first child.
	if again, err := firstChild(pid1); err != nil || again != child {
		return fmt.Errorf("process %d has ended", child)
	}
	return os.NewSyscallError("pidfd_send_signal", unix.PidfdSendSignal(fd, sig, nil, 0))
}

// AddHeld adds d to the time that the program of s reads as that of its holds: its soft
// RLIMIT_LOCKS, in microseconds. Linux has ignored that limit since 2.4.25 (getrlimit(2)),
// and the program can read it whenever it continues.
func AddHeld(s Sandbox, d time.Duration) error {
	child, err := firstChild(s.PID())
	if err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(child, unix.RLIMIT_LOCKS, nil, &limit); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	if limit.Cur == unix.RLIM_INFINITY {
		limit.Cur = 0
	}
	limit.Cur += uint64(d.Microseconds())
	return os.NewSyscallError("prlimit", unix.Prlimit(child, unix.RLIMIT_LOCKS, &limit, nil))
}

// firstChild returns the oldest child of a single-threaded process (proc(5)).
func firstChild(pid int) (int, error) {
	children, err := host.ChildrenOf(pid)
	if err == nil && len(children) == 0 {
		err = fmt.Errorf("process %d has no children", pid)
	}
	if err != nil {
		return 0, err
	}
	return children[0], nil
}
