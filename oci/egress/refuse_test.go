package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestAnswersHaveOneLineOfASCII, whatever a name server says.
func TestAnswersHaveOneLineOfASCII(t *testing.T) {
	for said, want := range map[string]string{
		"no\r\nSet-Cookie: a": "no??Set-Cookie: a",
		"n\u00f6 \x7f~":       "n? ?~",
	} {
		f := newFixture(t, Options{
			Rules: testRules{hosts: []string{"gone.test"}},
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: said, Name: "gone.test"}
			},
		}, hello)
		want = "looking up gone.test: " + want
		if got := f.raw("CONNECT gone.test:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+want+"\r\nContent-Type:") {
			t.Errorf("%q: %q", said, got)
		}
		if got := f.broker.Failures(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: the failures are %q", said, got)
		}
		if got := f.broker.Refusals(); len(got) > 0 {
			t.Errorf("%q: the refusals are %q", said, got)
		}
	}
}

// TestRefusedConnectionsAreGivenBack: there are only so many.
func TestRefusedConnectionsAreGivenBack(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{}}, hello)
	for i := range maxConns + 1 {
		if got := f.raw("CONNECT other.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403") {
			t.Fatalf("the answer after %d others: %q", i, got)
		}
	}
}

// leavingRules allow every request to an inspected host, once its client has gone.
type leavingRules struct {
	anyRequest
	leave func()
}

func (r leavingRules) AllowHost(_, host string, _ uint16) (string, error) {
	r.leave()
	return host, nil
}

// TestConnectionsOfClientsThatAreGoneAreGivenBack: they were never told that they are
// connected, and so did nothing that could be refused.
func TestConnectionsOfClientsThatAreGoneAreGivenBack(t *testing.T) {
	var client *net.TCPConn
	var f *fixture
	o := inspecting()
	o.Rules = leavingRules{anyRequest{o.Rules.(testRules)}, func() {
		reset(client)
		waitForReset(t, f.broker)
	}}
	f = newFixture(t, o, hello)
	handled := ends(f.broker)
	for range maxConns {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		client = c.(*net.TCPConn)
		send(t, client, []byte("CONNECT example.com:443 HTTP/1.1\r\n\r\n"))
		if p := <-handled; p != nil {
			t.Errorf("an internal error: %v", p)
		}
	}
	if got := f.raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("%q", got)
	}
	if uses := f.broker.Uses(); slices.ContainsFunc(uses, func(use Use) bool { return use.Host == "example.com" }) {
		t.Errorf("the uses are %+v", uses)
	}
}

// TestATunnelWhoseClientIsGoneIsNotRefused: it goes while its host is connected to.
func TestATunnelWhoseClientIsGoneIsNotRefused(t *testing.T) {
	var client *net.TCPConn
	var f *fixture
	asked := 0
	port, conns := listenRaw(t)
	f = newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}, private: func(string, netip.Addr) bool {
		if asked++; asked == 2 { // the first time is before the connection
			reset(client)
			waitForReset(t, f.broker)
		}
		return true
	}}}, hello)
	handled := ends(f.broker)
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	client = c.(*net.TCPConn)
	send(t, client, []byte("CONNECT example.com:"+port+" HTTP/1.1\r\n\r\n"))
	wantEnd(t, "the server", <-conns, nil)
	if p := <-handled; p != nil {
		t.Errorf("an internal error: %v", p)
	}
	if got := f.broker.Refusals(); len(got) > 0 || asked != 2 {
		t.Errorf("the refusals are %q; the rules were asked %d times", got, asked)
	}
}

// TestRefusalsAreNoInternalErrors, of an inspected connection either.
func TestRefusalsAreNoInternalErrors(t *testing.T) {
	f := newFixture(t, inspecting("GET /v1/*"), hello)
	handled := ends(f.broker)
	if got := f.ask("GET /v2/x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403") {
		t.Errorf("%q", got)
	}
	if got := f.raw("CONNECT other.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403") {
		t.Errorf("%q", got)
	}
	for range 3 { // with the first CONNECT
		if p := <-handled; p != nil {
			t.Errorf("an internal error: %v", p)
		}
	}
}

// ends tells how each request to a broker ends: with nil, or the panic of its handler.
func ends(b *Broker) <-chan any {
	all := make(chan any, 2*maxConns)
	for _, server := range []*http.Server{b.proxy, b.inspector} {
		h := server.Handler
		server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				p := recover()
				all <- p
				if p != nil {
					panic(p)
				}
			}()
			h.ServeHTTP(w, r)
		})
	}
	return all
}
