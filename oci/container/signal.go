package container

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SignalEach passes on each value that comes as a signal, until stop is called.
func SignalEach(each <-chan struct{}, s Sandbox) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-each:
				_ = signalProgram(s.PID()) // a process that is gone needs no signal
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// signalProgram sends SIGURG, which a process without a handler ignores
// (signal(7)), to the process that pid 1 of a sandbox has started: its first child.
func signalProgram(pid1 int) error {
	child, err := firstChild(pid1)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	// The number may have gone to another process meanwhile; what is open now
	// is the child if it still is the child.
	if again, err := firstChild(pid1); err != nil || again != child {
		return fmt.Errorf("process %d has ended", child)
	}
	return os.NewSyscallError("pidfd_send_signal", unix.PidfdSendSignal(fd, unix.SIGURG, nil, 0))
}

// firstChild gives the oldest child of a process that has one thread (proc(5)).
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
