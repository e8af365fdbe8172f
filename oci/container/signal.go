package container

import (
	"fmt"
	"os"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

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
