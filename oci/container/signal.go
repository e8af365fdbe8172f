package container

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to the process that pid 1 of s has started: its first
// child.
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
	// The pid may have been reused meanwhile. The pidfd is the child's if that
	// pid is still the first child.
	if again, err := firstChild(pid1); err != nil || again != child {
		return fmt.Errorf("process %d has ended", child)
	}
	return os.NewSyscallError("pidfd_send_signal", unix.PidfdSendSignal(fd, sig, nil, 0))
}

// firstChild returns the oldest child of a single-threaded process (proc(5)).
func firstChild(pid int) (int, error) {
	if pid <= 0 {
		return 0, fmt.Errorf("process %d has no children", pid)
	}
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(all), " ")
	return strconv.Atoi(first)
}
