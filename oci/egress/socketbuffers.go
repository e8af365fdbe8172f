package egress

import (
	"net"
	"sync"
	"syscall"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// The kernel lets the buffers of a connection grow to several megabytes, and charges them to
// the process that accepts or connects: to us, not to the sandbox. So only a few connections
// of a run, on each side, may grow that much; code that fills the others and reads nothing
// holds at most half a megabyte for each.
const (
	maxLarge    = 4
	smallSocket = 64 << 10 // bytes; the kernel doubles it (socket(7), SO_RCVBUF)

	// largeSend is how much may wait for the code on a connection with a slot. The kernel
	// sends it while the code reads, so that the code need not wait until we run again. With
	// the sandbox's own limit (spec.Sysctls), a twentieth of this, a download had 0.62 of the
	// direct throughput; with this, 0.72.
	largeSend = 4 << 20 // bytes; the kernel doubles it
	grown     = 1 << 20 // more than that limit ever allows

	// A copy begins with the smallest buffer, and doubles it while reads fill it: 512 KiB
	// take a third less of the broker's time than 128, and 128 a quarter less than 32.
	minCopy   = 32 << 10
	smallCopy = 128 << 10
	largeCopy = 512 << 10
)

// slots are for connections with large buffers, on one side.
type slots chan struct{}

func newSlots() slots { return make(slots, maxLarge) }

// take takes a slot if one is free, until the first call of release.
func (s slots) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), true
	default:
		return func() {}, false
	}
}

// shrink keeps the buffers of a connection small.
func shrink(c *net.TCPConn) {
	_ = c.SetReadBuffer(smallSocket)
	_ = c.SetWriteBuffer(smallSocket)
}

// enlarge allows a larger send buffer on a connection from the sandbox than its own limit.
// Only root of this host may set that much; for others net.core.wmem_max is the bound, and
// a buffer that is set no longer grows by itself, so a large one is left as it is.
func enlarge(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		now, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, largeSend) != nil && err == nil && now < grown {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, largeSend)
		}
	})
}

// smallControl does the same before a socket connects, which fixes its window (RFC 7323,
// 2.2).
func smallControl(_, _ string, c syscall.RawConn) (err error) {
	defer contain.Error("preparing a connection", &err)
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, smallSocket)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, smallSocket)
	})
}

// A slotConn releases its slots once it is closed.
type slotConn struct {
	*net.TCPConn
	release func()
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
