package egress

import (
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConnectionsThatAreNotReadHoldLittle: the kernel counts the buffers of a run's
// connections for us. All but a few may hold only little, and the places of
// the few are given back.
func TestConnectionsThatAreNotReadHoldLittle(t *testing.T) {
	o := Options{Rules: testRules{hosts: []string{"example.com"}}}
	f := newFixture(t, o, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = io.Copy(w, zeros{})
	})
	tr := f.client().Transport.(*http.Transport)
	for range 2 {
		var open []io.Closer
		for range maxWide + 3 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url("example.com", "/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req) //nolint:bodyclose // closed with the others
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, resp.Body)
		}
		wide := 0
		f.broker.mu.Lock()
		for c := range f.broker.conns {
			if !isNarrow(t, c) {
				wide++
			}
		}
		n := len(f.broker.conns)
		f.broker.mu.Unlock()
		if n != 2*len(open) || wide != 2*maxWide {
			t.Errorf("of %d connections on both sides, %d have wide buffers; want %d of %d", n, wide, 2*maxWide, 2*len(open))
		}
		for _, c := range open {
			c.Close()
		}
		for _, p := range []places{f.broker.wide.clients, f.broker.wide.servers, f.broker.wide.tunnels} {
			for range maxWide { // waits until all are given back
				p <- struct{}{}
			}
			for range maxWide {
				<-p
			}
		}
	}
}

// isNarrow reports whether the kernel lets the buffers of a socket not grow by themselves
// (socket(7), SO_BUF_LOCK), and they are small.
func isNarrow(t *testing.T, c net.Conn) bool {
	t.Helper()
	if placed, ok := c.(*placedConn); ok {
		c = placed.TCPConn
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var locked, received, sent int
	err = raw.Control(func(fd uintptr) {
		locked, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK)
		received, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		sent, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	})
	if err != nil {
		t.Fatal(err)
	}
	return locked == unix.SOCK_BUF_LOCK_MASK && received == 2*narrowSocket && sent == 2*narrowSocket
}
