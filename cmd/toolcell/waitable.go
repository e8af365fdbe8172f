package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// waitable gives standard input as a file that the runtime's poller waits for,
// and what to do at the end: in a read that blocks, a thread waits, which has to
// hand each message to another. A pipe is opened anew, since O_NONBLOCK belongs
// to whoever else has it open, too (open(2)). With a socket that cannot be done,
// and the flag is taken back. Of everything else it gives what it was given.
func waitable(in *os.File) (again *os.File, end func()) {
	raw, err1 := in.SyscallConn()
	st, err2 := in.Stat()
	if err1 != nil || err2 != nil {
		return in, func() {}
	}
	pipe, socket := st.Mode()&os.ModeNamedPipe != 0, st.Mode()&os.ModeSocket != 0
	fd := -1
	take := func(f uintptr) {
		flags, err := unix.FcntlInt(f, unix.F_GETFL, 0)
		switch {
		case err != nil || flags&unix.O_NONBLOCK != 0:
		case pipe:
			fd, _ = unix.Open(fmt.Sprintf("/proc/self/fd/%d", f), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		case socket && unix.SetNonblock(int(f), true) == nil:
			fd, _ = unix.FcntlInt(f, unix.F_DUPFD_CLOEXEC, 3)
		}
	}
	if err := raw.Control(take); err != nil || fd < 0 {
		return in, func() {}
	}
	again = os.NewFile(uintptr(fd), in.Name())
	return again, func() {
		if socket {
			_ = raw.Control(func(f uintptr) { _ = unix.SetNonblock(int(f), false) })
		}
		again.Close()
	}
}
