package oci

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

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
