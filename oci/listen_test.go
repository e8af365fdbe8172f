package oci

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/pid1"
	"golang.org/x/sys/unix"
)

// TestListenIsReachedFromInsideOnly: the listener is on the sandbox's loopback, not on
// that of the host or of another sandbox.
func TestListenIsReachedFromInsideOnly(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, other := l.waiting(t), l.waiting(t)
		for range 3 { // a session has one for each run
			listener, err := sb.Listen()
			if err != nil {
				t.Fatal(err)
			}
			addr := listener.Addr().String()
			if c, err := net.DialTimeout("tcp", addr, 5*time.Second); err == nil {
				defer c.Close() // the host may use the same port for something else
				_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second))
				if _, err := listener.Accept(); err == nil {
					t.Errorf("the host reaches %s", addr)
				}
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
		}
		listener, err := sb.Listen()
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		sendCode(other, fmt.Sprintf("import socket, sys; sys.exit(socket.socket().connect_ex(('127.0.0.1', %d)))", port))
		if exit, err := other.Wait(); err != nil || exit.Code != int(unix.ECONNREFUSED) {
			t.Errorf("another sandbox connects with %+v, %v", exit, err)
		}
		sendCode(sb, fmt.Sprintf(`
import socket
s = socket.create_connection(("127.0.0.1", %d))
s.sendall(b"from inside\n")
assert s.recv(100) == b"from outside", "the answer"
s.close()
`, port))
		_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second))
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		line, err := bufio.NewReader(c).ReadString('\n')
		if line != "from inside\n" {
			t.Errorf("%q came, error %v", line, err)
		}
		_, _ = io.WriteString(c, "from outside")
		exit, err := sb.Wait()
		if exit.Code != 0 || err != nil {
			t.Errorf("the code ended with %+v, %v", exit, err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		// The init of a fork may outlive Close by a moment.
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			late, err := sb.Listen()
			if err != nil {
				break
			}
			late.Close()
			if time.Now().After(end) {
				t.Fatal("a sandbox that has ended makes listeners")
			}
		}
	})
}

// waiting starts a sandbox that waits for its code.
func (l *lab) waiting(t *testing.T) *Sandbox {
	t.Helper()
	p := l.p
	streams(t, &p)
	sb, err := l.r.Start(t.Context(), p)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// TestListenAtServesLowPortsByAddress: what listens is where it was wanted, also below 1024,
// and what the code uses already is left out. Only pid 1 writes what the sandbox knows of it.
func TestListenAtServesLowPortsByAddress(t *testing.T) {
	at := netip.MustParseAddrPort
	eachKind(t, func(t *testing.T, l *lab) {
		sb, out := l.start(t.Context(), t, l.p, `
import socket
mine = socket.create_server(("127.64.0.2", 443))
resolver = lambda: repr(open("/etc/resolv.conf").read())
try: open("/etc/resolv.conf", "w"); print("written")
except OSError: pass
print(resolver(), flush=True)
go = socket.socket(fileno=3)
go.recv(1)
print(resolver())
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    s = socket.socket(type=kind)
    s.connect(("127.0.0.1", 53))
    s.send(b"ask")
    print(s.recv(9))
s = socket.create_connection(("127.64.0.1", 443))
print(s.recv(9))
print(socket.socket().connect_ex(("127.64.0.3", 443)), flush=True)
go.recv(1)
print(resolver())
`)
		lines := bufio.NewReader(out)
		want := func(want string) {
			t.Helper()
			if got, err := lines.ReadString('\n'); got != want+"\n" {
				t.Fatalf("%q came, %v, want %q", got, err, want)
			}
		}
		want(`'# no name server now\noptions timeout:0 attempts:1\n'`)
		for range 2 { // as in a session, with connections that linger
			packets, listeners, err := sb.ListenAt([]netip.AddrPort{at("127.0.0.1:53")}, []netip.AddrPort{at("127.0.0.1:53"), at("127.64.0.1:443"), at("127.64.0.2:443")})
			if err != nil || len(packets) != 1 || len(listeners) != 2 || listeners[1].Addr().String() != "127.64.0.1:443" {
				t.Fatalf("ListenAt = %v, %v, %v", packets, listeners, err)
			}
			pid1.Sockets{Packets: packets, Listeners: listeners}.Close()
		}
		if err := sb.Resolve(true); err != nil {
			t.Fatal(err)
		}
		packets, listeners, err := sb.ListenAt([]netip.AddrPort{at("127.0.0.1:53")}, []netip.AddrPort{at("127.0.0.1:53"), at("127.64.0.1:443")})
		if err != nil {
			t.Fatal(err)
		}
		defer pid1.Sockets{Packets: packets, Listeners: listeners}.Close()
		if _, err := sb.Conn().Write([]byte("g")); err != nil {
			t.Fatal(err)
		}
		want(`'nameserver 127.0.0.1\noptions timeout:5 attempts:2\n'`)
		answer := func(l net.Listener, text string) {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, text)
		}
		answer(listeners[0], "tcp")
		want("b'tcp'")
		question := make([]byte, 9)
		n, from, err := packets[0].ReadFrom(question)
		if err != nil || string(question[:n]) != "ask" {
			t.Fatalf("%q came, %v", question[:n], err)
		}
		_, _ = packets[0].WriteTo([]byte("udp"), from)
		want("b'udp'")
		answer(listeners[1], "name")
		want("b'name'")
		want(fmt.Sprint(int(unix.ECONNREFUSED)))
		if err := sb.Resolve(false); err != nil {
			t.Fatal(err)
		}
		late, err := sb.Listen() // by then pid 1 has obeyed
		if err != nil {
			t.Fatal(err)
		}
		late.Close()
		if _, err := sb.Conn().Write([]byte("g")); err != nil {
			t.Fatal(err)
		}
		want(`'# no name server now\noptions timeout:0 attempts:1\n'`)
	})
}
