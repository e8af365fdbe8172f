package egress

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel lets the buffers of a connection grow to several megabytes, and counts
// them for the process that accepts or connects: for us, and not for the sandbox. So
// only a few connections of a run, on each side, may have as much; with the others,
// code that fills all of them and reads nothing holds half a megabyte more for each.
const (
	maxWide      = 4
	narrowSocket = 64 << 10 // bytes; the kernel doubles it (socket(7), SO_RCVBUF)

	// wideCopy and narrowCopy are the buffers of a tunnel, in bytes. Half a megabyte
	// was 5 % faster than 128 KiB in alternated downloads on an idle machine.
	wideCopy   = 512 << 10
	narrowCopy = 32 << 10
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

// narrowControl does it before a socket connects, since that settles its window
// (RFC 7323, 2.2).
func narrowControl(_, _ string, c syscall.RawConn) error {
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
