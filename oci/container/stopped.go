package container

import (
	"bytes"
	"os"
	"strconv"
	"strings"

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
