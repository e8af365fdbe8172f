package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// listenRaw returns the port of a server that does nothing by itself, and its connections.
func listenRaw(t *testing.T) (port string, conns <-chan *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan *net.TCPConn, maxConns)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			t.Cleanup(func() { c.Close() })
			accepted <- c.(*net.TCPConn)
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, accepted
}

// connect opens a tunnel to example.com.
func (f *fixture) connect(port string) *net.TCPConn {
	f.t.Helper()
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "CONNECT example.com:%s HTTP/1.1\r\n\r\n", port)
	wantConnected(f.t, c)
	return c.(*net.TCPConn)
}

// helloFor returns the first message of a client.
func helloFor(serverName string) []byte {
	var first bytes.Buffer
	recordHello(&first, serverName)
	return first.Bytes()
}

// send writes to a connection that has to take it.
func send(t *testing.T, c net.Conn, data []byte) {
	t.Helper()
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
}

// wantEnd reads what a connection still has, which must be want, to its end: whether that is
// an orderly one or not.
func wantEnd(t *testing.T, name string, c net.Conn, want []byte) {
	t.Helper()
	if got, err := io.ReadAll(c); !bytes.Equal(got, want) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s got %d bytes, want %d; error %v", name, len(got), len(want), err)
	}
}

// TestTunnelHasTwoDirections, and the end of one is not that of the other.
func TestTunnelHasTwoDirections(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	port, conns := listenRaw(t)
	first, more := helloFor("example.com"), make([]byte, 4<<20)

	client, server := f.connect(port), <-conns
	send(t, client, first)
	_ = client.CloseWrite()
	wantEnd(t, "a server whose client sends no more", server, first)
	send(t, server, []byte("answer"))
	server.Close()
	wantEnd(t, "a client that sends no more", client, []byte("answer"))

	client, server = f.connect(port), <-conns
	send(t, client, first)
	if _, err := io.ReadFull(server, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}
	_ = server.CloseWrite()
	wantEnd(t, "a client whose server sends no more", client, nil)
	go func() { _, _ = client.Write(more); _ = client.CloseWrite() }()
	wantEnd(t, "a server that sends no more", server, more)
}

// TestTunnelRefusesOnRecord: the code's client sees an end without a reason, and the server
// nothing but the end.
func TestTunnelRefusesOnRecord(t *testing.T) {
	for want, first := range map[string][]byte{
		"only TLS passes through CONNECT":                                            []byte("GET / HTTP/1.1\r\n\r\n"),
		`the TLS handshake is for "other.com", and the connection for "example.com"`: helloFor("other.com"),
	} {
		f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
		port, conns := listenRaw(t)
		client := f.connect(port)
		send(t, client, first)
		wantEnd(t, "the client", client, nil)
		wantEnd(t, "the server", <-conns, nil)
		if got, uses := f.broker.Refusals(), f.broker.Uses(); !slices.Equal(got, []string{want}) || uses[0].Refused != 1 || uses[0].BytesSent != 0 {
			t.Errorf("the refusals are %q, the uses %+v; want %q", got, uses, want)
		}
	}
}

// TestTunnelThatSendsNothingIsNotRefused: its client has given up.
func TestTunnelThatSendsNothingIsNotRefused(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	port, conns := listenRaw(t)
	client := f.connect(port)
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, "the client", client, nil)
	wantEnd(t, "the server", <-conns, nil)
	if got := f.broker.Refusals(); len(got) > 0 {
		t.Errorf("the refusals are %q", got)
	}
}

// TestTunnelEndsAtTheBound, at both of its ends, though neither closes its connection.
func TestTunnelEndsAtTheBound(t *testing.T) {
	first := helloFor("example.com")
	size := int64(len(first))
	for name, c := range map[string]struct {
		bound          int64
		sent, answered string
	}{
		"handshake": {size - 1, "", ""},
		"sent":      {size + 3, "more", ""},
		"received":  {size + 3, "", "more"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}, MaxBytes: c.bound}, hello)
			port, conns := listenRaw(t)
			client, server := f.connect(port), <-conns
			send(t, client, first)
			if c.bound > size {
				if _, err := io.ReadFull(server, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
				send(t, client, []byte(c.sent))
				send(t, server, []byte(c.answered))
				wantEnd(t, "the server", server, nil)
			} else if got, err := io.ReadAll(server); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the server got %d bytes, %v", len(got), err)
			}
			wantEnd(t, "the client", client, nil)
			if got, uses := f.broker.Refusals(), f.broker.Uses(); !slices.Equal(got, []string{errBytes.Error()}) || uses[0].Refused != 1 {
				t.Errorf("the refusals are %q, the uses %+v", got, uses)
			}
		})
	}
}

// reset ends a connection without the usual farewell.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

// A deadlineConn keeps its deadlines.
type deadlineConn struct {
	recordConn
	deadlines []time.Time
}

func (c *deadlineConn) SetReadDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	return nil
}

// TestOnlyTheHandshakeHasADeadline: what follows it may take its time.
func TestOnlyTheHandshakeHasADeadline(t *testing.T) {
	var c deadlineConn
	name, _, err := readHello(&c, bytes.NewReader(helloFor("example.com")))
	if err != nil || name != "example.com" || len(c.deadlines) != 2 || c.deadlines[0].IsZero() || !c.deadlines[1].IsZero() {
		t.Errorf("%q, error %v, deadlines %v", name, err, c.deadlines)
	}
	if _, _, err := readHello(&c, io.MultiReader(strings.NewReader("\x16\x03"), lateReader{})); err == nil || err.Error() != "the TLS handshake has not begun in time" {
		t.Errorf("after the deadline: %v", err)
	}
}

// A lateReader is a connection after its deadline.
type lateReader struct{}

func (lateReader) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestAFaultEndsBothEndsOfATunnel: one that passes nothing on must not stay open.
func TestAFaultEndsBothEndsOfATunnel(t *testing.T) {
	var armed atomic.Bool
	contain.Inject(t, func(point string) bool { return point == "egress: usage locked" && armed.Swap(false) })
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	port, conns := listenRaw(t)
	client, server := f.connect(port), <-conns
	first := helloFor("example.com")
	send(t, client, first)
	if _, err := io.ReadFull(server, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}
	send(t, server, []byte("x")) // its count comes after that of the handshake
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	send(t, client, []byte("y"))
	wantEnd(t, "the server", server, nil)
	wantEnd(t, "the client", client, nil)
	if armed.Load() {
		t.Error("this point was not passed")
	}
}

// waitForReset waits until the end of one of a broker's connections has come.
func waitForReset(t *testing.T, b *Broker) {
	t.Helper()
	const closed = 7 // TCP_CLOSE in include/net/tcp_states.h
	for ; ; runtime.Gosched() {
		b.mu.Lock()
		open := slices.Collect(maps.Keys(b.conns))
		b.mu.Unlock()
		for _, c := range open {
			raw, err := c.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Error(err)
				return
			}
			var info *unix.TCPInfo
			_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) })
			if err == nil && info != nil && info.State == closed {
				return
			}
		}
	}
}
