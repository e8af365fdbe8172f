package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultsGiveTheirConnectionsPlaceBack: otherwise as many as may be open at once would
// leave no place for another.
func TestFaultsGiveTheirConnectionsPlaceBack(t *testing.T) {
	for _, point := range []string{"accepting a connection of a run", "closing a connection of a run"} {
		t.Run(point, func(t *testing.T) {
			f := newFixture(t, Options{Rules: testRules{}}, hello)
			reached := make(chan struct{}, 1)
			contain.Inject(t, func(at string) bool {
				if at != point {
					return false
				}
				select {
				case reached <- struct{}{}:
				default:
				}
				return true
			})
			for i := range maxConns + 1 {
				c, err := net.Dial("tcp", f.proxy)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				_, _ = io.WriteString(c, "no request\r\n\r\n")
				_, err = io.ReadAll(c)
				c.Close()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("connection %d has no place", i+1)
				}
			}
			select {
			case <-reached:
			case <-time.After(20 * time.Second):
				t.Error("this point was not passed")
			}
		})
	}
}

// TestFailuresToAcceptTakeNoPlace: a process without free file descriptors has many of them.
func TestFailuresToAcceptTakeNoPlace(t *testing.T) {
	_, b := startBroker(t, Options{Rules: testRules{}})
	b.free = make(chan struct{}, maxConns)
	l := &limitedListener{Listener: failingListener{}, b: b}
	if c, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%v, error %v", c, err)
	}
	if n := len(b.free); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// A failingListener accepts nothing.
type failingListener struct{ net.Listener }

func (failingListener) Accept() (net.Conn, error) { return nil, syscall.EMFILE }

// TestConnectionsOfARunAreWidened: its first ones may have more waiting for the code than the
// sandbox's own limit allows.
func TestConnectionsOfARunAreWidened(t *testing.T) {
	config := net.ListenConfig{Control: smallControl} // as the sandbox's own limit, accepted connections inherit it
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deciding, decide := make(chan struct{}), make(chan struct{})
	b, err := Start(l, Options{Rules: slowRules{deciding: deciding, decide: decide}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	defer close(decide)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "CONNECT other.com:443 HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-deciding
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.conns) != 1 {
		t.Fatalf("%d connections are open", len(b.conns))
	}
	for c := range b.conns {
		if got := buffersOf(t, c).sent; got <= 2*smallSocket {
			t.Errorf("%d bytes may wait for the code", got)
		}
	}
}
