package egress

import (
	"net"
	"sync"
	"syscall"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// The kernel lets the buffers of a connection grow to several megabytes, and counts
// them for the process that accepts or connects: for us, and not for the sandbox. So
// only a few connections of a run, on each side, may have as much; with the others,
// code that fills all of them and reads nothing holds half a megabyte more for each.
const (
	maxWide      = 4
	narrowSocket = 64 << 10 // bytes; the kernel doubles it (socket(7), SO_RCVBUF)

	// wideSend is what may wait for the code on a connection that has a place. The
	// kernel sends from there while the code reads, so that the code need not wait
	// until we run again. With what the sandbox's own limit allows (spec.Sysctls), a
	// twentieth, a download had 0.62 of the direct throughput, and with this 0.72.
	wideSend = 4 << 20 // bytes; the kernel doubles it
	grown    = 1 << 20 // and what that limit never lets a buffer have

	// A copy begins with the smallest buffer. Larger ones are for what fills them: of
	// the broker's time, 512 KiB take a third less than 128, and 128 a quarter less
	// than 32.
	smallestCopy = 32 << 10
	narrowCopy   = 128 << 10
	wideCopy     = 512 << 10
)

// A places counts those that have wide buffers, on one side.
type places chan struct{}

func newPlaces() places { return make(places, maxWide) }

// take takes a place, if one is free, until give is called for the first time.
func (p places) take() (give func(), ok bool) {
	select {
	case p <- struct{}{}:
		return sync.OnceFunc(func() { <-p }), true
	default:
		return func() {}, false
	}
}

// narrow keeps the buffers of a connection small.
func narrow(c net.Conn) {
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetReadBuffer(narrowSocket)
		_ = c.SetWriteBuffer(narrowSocket)
	}
}

// widen lets more wait in a connection from the sandbox than its own limit allows. Only
// root of this host may set as much; for others net.core.wmem_max is the bound, and
// a buffer that is set no longer grows by itself, so a large one stays as it is.
func widen(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		now, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, wideSend) != nil && err == nil && now < grown {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, wideSend)
		}
	})
}

// narrowControl does it before a socket connects, since that settles its window
// (RFC 7323, 2.2).
func narrowControl(_, _ string, c syscall.RawConn) (err error) {
	defer contain.Error("preparing a connection", &err)
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, narrowSocket)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, narrowSocket)
	})
}

// A placedConn gives its place back once it is closed.
type placedConn struct {
	*net.TCPConn
	give func()
}

func (c *placedConn) Close() error {
	defer c.give()
	return c.TCPConn.Close()
}
