package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// plainServer returns the address, as plain.test, of a server without TLS, and what ends it.
func plainServer(t *testing.T, h http.HandlerFunc) (address string, end func()) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return "plain.test:" + port, server.Close
}

// TestForwardKeepsTheQuery, also one that package url takes for wrong: servers may not.
func TestForwardKeepsTheQuery(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
	host, _ := plainServer(t, hello)
	if got := f.raw("GET http://" + host + "/x?a;b&c=%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "GET /x?a;b&c=%zz of "+host) {
		t.Errorf("%q", got)
	}
}

// TestForwardedBytesAreBounded in what is received, and no request follows that.
func TestForwardedBytesAreBounded(t *testing.T) {
	const bound = 256 << 10
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}, MaxBytes: bound}, hello)
	var asked atomic.Int32
	host, _ := plainServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.CopyN(w, zeros{}, 16*bound)
	})
	request := "GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	if got := f.raw(request); !strings.HasPrefix(got, "HTTP/1.1 200 OK") || len(got) > 2*bound {
		t.Errorf("%d bytes came: %.50q", len(got), got)
	}
	if got := f.raw(request); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+errBytes.Error()+"\r\n") || asked.Load() != 1 {
		t.Errorf("the request after it: %.200q; the server got %d", got, asked.Load())
	}
	if got := f.broker.Refusals(); !slices.Equal(got, []string{errBytes.Error()}) {
		t.Errorf("the refusals are %q", got)
	}
	if got := f.broker.Failures(); len(got) > 0 { // it would be said twice
		t.Errorf("the failures are %q", got)
	}
}

// TestAnAnswerAboveTheBoundIsRefused, though the server says no more: it is not at fault.
func TestAnAnswerAboveTheBoundIsRefused(t *testing.T) {
	const bound = 1 << 10
	for name, answer := range map[string]string{
		"status line": "HTTP/1.1 200 " + strings.Repeat("x", 3*bound),
		"header":      "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 20*bound),
	} {
		f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}, MaxBytes: bound}, hello)
		host := rawServer(t, answer)
		if got := f.raw("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+errBytes.Error()+"\r\n") {
			t.Errorf("%s: %.200q", name, got)
		}
		if got := f.broker.Failures(); len(got) > 0 {
			t.Errorf("%s: the failures are %q", name, got)
		}
	}
}

// rawServer answers the first bytes of each connection, and then waits for the end.
func rawServer(t *testing.T, answer string) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, answer)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "plain.test:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestUploadsAreBounded: no byte above the bound is sent.
func TestUploadsAreBounded(t *testing.T) {
	const bound = 64 << 10
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}, MaxBytes: bound}, hello)
	var received atomic.Int64
	host, end := plainServer(t, func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Add(n)
	})
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", host, 2*bound)
	if _, err := io.CopyN(c, zeros{}, 2*bound); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 502 toolcell: "+errBytes.Error()+"\r\n") {
		t.Errorf("%q", got)
	}
	f.broker.Close()
	end() // waits for the request
	if n := received.Load(); n > bound {
		t.Errorf("the server received %d bytes", n)
	}
	if got := f.broker.Refusals(); !slices.Equal(got, []string{errBytes.Error()}) {
		t.Errorf("the refusals are %q", got)
	}
}

// TestRequestsEndWithTheRun, and the record says that it was not their host that failed.
func TestRequestsEndWithTheRun(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
	arrived := make(chan struct{})
	host, _ := plainServer(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n", host)
	<-arrived
	f.broker.Close()
	if got := f.broker.Failures(); !slices.Equal(got, []string{"the run has ended"}) {
		t.Errorf("the failures are %q", got)
	}
}

// TestCodeThatGivesUpDoesNotEndTheRun, and its host is not at fault.
func TestCodeThatGivesUpDoesNotEndTheRun(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
	arrived, gone := make(chan struct{}), make(chan struct{})
	host, end := plainServer(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	})
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n", host)
	<-arrived
	c.Close()
	<-gone
	end()
	for len(f.broker.Failures()) == 0 && t.Context().Err() == nil {
		runtime.Gosched() // the connection to the server ends before the request does
	}
	f.broker.Close()
	if got := f.broker.Failures(); !slices.Equal(got, []string{"the code closed its connection before plain.test had answered"}) {
		t.Errorf("the failures are %q", got)
	}
}

// TestAPanicOfTheResolverIsContained: net/http calls it in a goroutine of its own.
func TestAPanicOfTheResolverIsContained(t *testing.T) {
	var faults atomic.Int32
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"plain.test"}},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if faults.Add(1) == 1 {
				panic("planted")
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}, hello)
	host, _ := plainServer(t, hello)
	for _, want := range []string{"502", "200"} {
		if got := f.raw("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// TestAFaultOfAForwardedRequestIsThatOfNoOther: net/http dials and reads in goroutines of its
// own. What is not decided or prepared is not sent.
func TestAFaultOfAForwardedRequestIsThatOfNoOther(t *testing.T) {
	host, _ := plainServer(t, hello)
	request := "GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for point, passes := range map[string]int32{
		"egress: deciding": 1, "preparing a connection": 1,
		"egress: usage locked": 2, // once for what is sent, then for what is received
	} {
		f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
		for range maxLarge { // so that the connection is one to be kept small
			f.broker.large.servers.take()
		}
		var passed atomic.Int32
		t.Run(point, func(t *testing.T) {
			contain.Inject(t, func(at string) bool { return at == point && passed.Add(1) == passes })
			if got := f.raw(request); strings.Contains(got, "GET / of") && passes == 1 || passed.Load() < passes {
				t.Errorf("%q, after this point was passed %d times", got, passed.Load())
			}
		})
		if got := f.raw(request); !strings.Contains(got, "GET / of "+host) {
			t.Errorf("%s: the request after it: %q", point, got)
		}
	}
}

// TestAFaultOpensNoTunnel, nor reaches its host.
func TestAFaultOpensNoTunnel(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	contain.Inject(t, func(at string) bool { return at == "egress: deciding" })
	if got := f.raw("CONNECT " + f.hostPort() + " HTTP/1.1\r\n\r\n"); got != "" || len(f.broker.Uses()) > 0 {
		t.Errorf("%q, uses %+v", got, f.broker.Uses())
	}
}
