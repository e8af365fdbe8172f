package egress

import (
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConnectionsThatAreNotReadHoldLittle: the kernel counts the buffers of a run's
// connections for us. All but a few may hold only little, and the slots of
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
		for range maxLarge + 3 {
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
		large := 0
		f.broker.mu.Lock()
		for c := range f.broker.conns {
			if buffersOf(t, c) != (buffers{unix.SOCK_BUF_LOCK_MASK, 2 * smallSocket, 2 * smallSocket}) {
				large++
			}
		}
		n := len(f.broker.conns)
		f.broker.mu.Unlock()
		if n != 2*len(open) || large != 2*maxLarge {
			t.Errorf("of %d connections on both sides, %d have large buffers; want %d of %d", n, large, 2*maxLarge, 2*len(open))
		}
		for _, c := range open {
			c.Close()
		}
		for _, p := range []slots{f.broker.large.clients, f.broker.large.servers, f.broker.large.tunnels} {
			for range maxLarge { // waits until all are given back
				p <- struct{}{}
			}
			for range maxLarge {
				<-p
			}
		}
	}
}

// TestWidenedConnectionsHoldMuch: what waits for the code is sent without us.
func TestWidenedConnectionsHoldMuch(t *testing.T) {
	config := net.ListenConfig{Control: smallControl} // as the sandbox's own limit, accepted connections inherit it
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inside, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := buffersOf(t, c)
	enlarge(c.(*net.TCPConn))
	setting, err := os.ReadFile("/proc/sys/net/core/wmem_max")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(setting)))
	if err != nil {
		t.Fatal(err)
	}
	got := buffersOf(t, c).sent
	if got != 2*largeSend && got != 2*min(largeSend, most) || got <= before.sent {
		t.Errorf("the send buffer has grown from %d to %d bytes; want %d, or as much of it as net.core.wmem_max allows", before.sent, got, 2*largeSend)
	}
}

// buffers are those of a socket, and whether the kernel lets them not grow by itself
// (socket(7), SO_BUF_LOCK).
type buffers struct{ locked, received, sent int }

func buffersOf(t *testing.T, c net.Conn) (b buffers) {
	t.Helper()
	if slot, ok := c.(*slotConn); ok {
		c = slot.TCPConn
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		b.locked, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK)
		b.received, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		b.sent, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
