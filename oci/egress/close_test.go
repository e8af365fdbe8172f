package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCloseWaitsForRequestsThatAreDecided: what they have reached belongs to the run's result.
func TestCloseWaitsForRequestsThatAreDecided(t *testing.T) {
	deciding, decide := make(chan struct{}), make(chan struct{})
	f := newFixture(t, Options{Rules: slowRules{deciding: deciding, decide: decide}}, hello)
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "CONNECT other.com:443 HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-deciding
	closed := make(chan struct{})
	go func() { defer close(closed); f.broker.Close() }()
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is open still")
	}
	select {
	case <-closed:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond): // it cannot come: a request is being decided
	}
	close(decide)
	<-closed
	if uses := f.broker.Uses(); len(uses) != 1 || uses[0].Refused != 1 {
		t.Errorf("uses are %+v", uses)
	}
}

// slowRules refuse everything, when they are told to.
type slowRules struct {
	testRules
	deciding chan<- struct{}
	decide   <-chan struct{}
}

func (r slowRules) AllowHost(string, string, uint16) (string, error) {
	close(r.deciding)
	<-r.decide
	return "", errors.New("no")
}

// TestNothingIsDecidedOrKeptAfterClose: a request or a connection may have been on its way.
func TestNothingIsDecidedOrKeptAfterClose(t *testing.T) {
	_, b := startBroker(t, Options{Rules: testRules{}})
	b.Close()
	b.proxy.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://other.com/", nil))
	if uses := b.Uses(); len(uses) != 0 {
		t.Errorf("uses are %+v", uses)
	}
	near, far := net.Pipe()
	defer far.Close()
	defer b.keep(near)()
	_ = far.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// TestCloseEndsConnectionsThatWaitForRequests: no host is to see more of a run than its time.
func TestCloseEndsConnectionsThatWaitForRequests(t *testing.T) {
	states := make(chan http.ConnState, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) { states <- s }
	server.Start()
	defer server.Close()
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if got := f.raw("GET http://plain.test:" + port + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("%q", got)
	}
	f.broker.Close()
	late := time.After(20 * time.Second) // before IdleConnTimeout
	for {
		select {
		case s := <-states:
			if s == http.StateClosed {
				return
			}
		case <-late:
			t.Fatal("the connection to the host is open still")
		}
	}
}

// TestAFaultOfTheListenerEndsTheRunsNetwork: what is on its way must not go on, with nobody
// who answers the next request.
func TestAFaultOfTheListenerEndsTheRunsNetwork(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(&faultyListener{Listener: inner, fault: asked}, Options{Rules: testRules{hosts: []string{"127.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	f := &fixture{t: t, broker: b, proxy: inner.Addr().String()}
	if got := f.raw("GET " + server.URL + "/ HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: the run has ended") {
		t.Errorf("%q", got)
	}
	if c, err := net.Dial("tcp", f.proxy); err == nil {
		c.Close()
		t.Error("something listens still")
	}
}

// A faultyListener panics after its first connection, at fault.
type faultyListener struct {
	net.Listener
	first sync.Once
	fault <-chan struct{}
}

func (l *faultyListener) Accept() (c net.Conn, err error) {
	l.first.Do(func() { c, err = l.Listener.Accept() })
	if c == nil && err == nil {
		<-l.fault
		panic("a fault of the listener")
	}
	return c, err
}
