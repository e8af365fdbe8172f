package stdio

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other end of in is closed, though not all of in was read.
func hungUp(in io.Reader) (gone bool) {
	file, ok := in.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
		n, err := unix.Poll(events, 0)
		gone = err == nil && n > 0 && events[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR) != 0
	})
	return gone && err == nil
}
