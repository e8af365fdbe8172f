package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// byName starts a broker for names, each at the port of a server that speaks tls, http, or what
// it is told (echo), and returns where the names are. With no kind there is no server.
func byName(t *testing.T, o Options, kinds string, names ...Name) (*fixture, []netip.AddrPort) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	for i, kind := range strings.Fields(kinds) {
		l, err := net.Listen("tcp", "127.0.0.3:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		names[i].Port = netip.MustParseAddrPort(l.Addr().String()).Port()
		serveKind(t, kind, l, server.TLS.Certificates)
	}
	o.Names = NewNameTable(names)
	o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.3")}, nil
	}
	at := make([]netip.AddrPort, len(names))
	for i, n := range names {
		at[i] = netip.AddrPortFrom(o.Names.addrs[n.Host], n.Port)
		l, err := net.Listen("tcp", at[i].String())
		if err != nil {
			t.Fatal(err)
		}
		o.Named = append(o.Named, l)
	}
	return newFixture(t, o, hello), at
}

func serveKind(t *testing.T, kind string, l net.Listener, certificates []tls.Certificate) {
	t.Helper()
	switch kind {
	case "none":
		l.Close()
	case "echo":
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(c, c)
					c.Close()
				}()
			}
		}()
	case "tls":
		l = tls.NewListener(l, &tls.Config{Certificates: certificates})
		fallthrough
	case "http":
		s := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s of %s %s", r.RequestURI, r.Host, r.Header.Get("X-Token"))
		})}
		t.Cleanup(func() { s.Close() })
		go func() { _ = s.Serve(l) }()
	}
}

func dialName(t *testing.T, at netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// over speaks TLS with a name, and asks for a path there.
func (f *fixture) over(c net.Conn, serverName, host, path string) (string, error) {
	roots := x509.NewCertPool()
	roots.AddCert(f.server.Certificate())
	roots.AppendCertsFromPEM(f.broker.Certificate())
	secure := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: serverName})
	if err := secure.Handshake(); err != nil {
		return "", err
	}
	return ask(secure, host, path)
}

func ask(c net.Conn, host, path string) (string, error) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}

// TestNamesAreServedAsThroughTheProxy: TLS as after CONNECT, and requests as for http://.
func TestNamesAreServedAsThroughTheProxy(t *testing.T) {
	const secret = "secret-value"
	f, at := byName(t, Options{
		Rules: tcpRules{testRules{
			hosts: []string{"example.com", "plain.test"}, inspected: map[string][]string{"in.example.com": {"GET /ok"}},
		}, "db.test"},
		Inspect:     []string{"in.example.com"},
		Credentials: []Credential{{Host: "in.example.com", Header: "X-Token", Value: secret, Secrets: []string{secret}, Placeholder: "hidden"}},
	}, "tls tls http echo", Name{Host: "example.com"}, Name{Host: "in.example.com"}, Name{Host: "plain.test"}, Name{Host: "db.test", Any: true})
	host := func(i int, name string) string { return fmt.Sprintf("%s:%d", name, at[i].Port()) }
	secure := func(i int, serverName, host, path string) func() (string, error) {
		return func() (string, error) { return f.over(dialName(t, at[i]), serverName, host, path) }
	}
	plain := func(i int, host, path string) func() (string, error) {
		return func() (string, error) { return ask(dialName(t, at[i]), host, path) }
	}
	for name, tt := range map[string]struct {
		do      func() (string, error)
		want    string
		refused string
	}{
		"a host":                           {secure(0, "example.com", "any.test", "/x"), "200 /x of any.test ", ""},
		"a host, another server name":      {secure(0, "plain.test", "example.com", "/"), "", `the TLS handshake is for "plain.test"`},
		"an address with another's name":   {secure(1, "example.com", "example.com", "/ok"), "", `the TLS handshake is for "example.com"`},
		"an inspected one":                 {secure(1, "in.example.com", host(1, "in.example.com"), "/ok"), "200 /ok of " + host(1, "in.example.com") + " hidden", ""},
		"a request that no rule allows":    {secure(1, "in.example.com", host(1, "in.example.com"), "/no"), `403 toolcell: add "GET /no" to [network] allow`, `add "GET /no"`},
		"the header of another host":       {secure(1, "in.example.com", host(0, "example.com"), "/ok"), "403 toolcell: the request is for example.com:", "the request is for example.com:"},
		"an inspected one without TLS":     {plain(1, host(1, "in.example.com"), "/no"), `403 toolcell: add "GET /no"`, ""},
		"http":                             {plain(2, host(2, "plain.test"), "/y"), "200 /y of " + host(2, "plain.test") + " ", ""},
		"http for another host":            {plain(2, "example.com", "/y"), "403 toolcell: the request is for example.com:80, and the connection for plain.test:", ""},
		"http for an https address":        {plain(2, "plain.test", "https://"+host(2, "plain.test")+"/y"), "403 toolcell: the request is for an https:// address", ""},
		"a protocol that is not allowed":   {said(t, at[2], "\x00\x00\x00\x08"), "", "began with neither TLS nor HTTP; for other protocols add \"tcp://plain.test:"},
		"TLS where none is":                {secure(2, "plain.test", "plain.test", "/"), "", ""},
		"any protocol, in both directions": {said(t, at[3], "\x00\x00\x00\x08"), "\x00\x00\x00\x08", ""},
	} {
		got, err := tt.do()
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if why := strings.Join(f.broker.Refusals(), "; "); !strings.Contains(why, tt.refused) || strings.HasPrefix(got, "200") && why != "" {
			t.Errorf("%s: refused %q", name, why)
		}
		f.broker.usage.mu.Lock()
		f.broker.usage.refused = nil // few reasons are kept
		f.broker.usage.mu.Unlock()
	}
	for _, use := range f.broker.Uses() {
		if use.Host == "db.test" && (use.Requests != 1 || use.BytesSent != 4 || use.BytesReceived != 4 || use.Rule != "tcp") {
			t.Errorf("any protocol: %+v", use)
		}
	}
}

// said sends text, and returns all that comes back.
func said(t *testing.T, at netip.AddrPort, text string) func() (string, error) {
	return func() (string, error) {
		c := dialName(t, at)
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		all, err := io.ReadAll(c)
		return string(all), err
	}
}

// tcpRules allow one more host, whatever the protocol.
type tcpRules struct {
	testRules
	any string
}

func (r tcpRules) AllowHost(scheme, host string, port uint16) (string, error) {
	if scheme == "tcp" && host == r.any {
		return "tcp", nil
	}
	return r.testRules.AllowHost(scheme, host, port)
}

// TestRefusedNamesEndTheHandshake with an alert that clients show, and with nothing reached.
func TestRefusedNamesEndTheHandshake(t *testing.T) {
	for name, tt := range map[string]struct {
		rules   testRules
		want    string
		refused string
		failed  string
	}{
		"not allowed":      {testRules{}, "access denied", `add "example.com" to [network] allow`, ""},
		"a private one":    {testRules{hosts: []string{"example.com"}, private: func(string, netip.Addr) bool { return false }}, "access denied", "is not a public one", ""},
		"nothing is there": {testRules{hosts: []string{"example.com"}}, "internal error", "", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			f, at := byName(t, Options{Rules: tt.rules}, "none", Name{Host: "example.com"})
			if _, err := f.over(dialName(t, at[0]), "example.com", "example.com", "/"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the client says %v", err)
			}
			if got := strings.Join(f.broker.Refusals(), "; "); !strings.Contains(got, tt.refused) || tt.refused == "" && got != "" {
				t.Errorf("refused: %q", got)
			}
			if got := strings.Join(f.broker.Failures(), "; "); !strings.Contains(got, tt.failed) || tt.failed == "" && got != "" {
				t.Errorf("failed: %q", got)
			}
		})
	}
}

// TestConnectionsToNamesHaveTheBounds of all connections of a run, and end with it.
func TestConnectionsToNamesHaveTheBounds(t *testing.T) {
	f, at := byName(t, Options{Rules: tcpRules{testRules{}, "db.test"}}, "echo", Name{Host: "db.test", Any: true})
	var open []net.Conn
	for range 2 * maxConns {
		open = append(open, dialName(t, at[0]))
	}
	for end := time.Now().Add(20 * time.Second); len(f.broker.free) < maxConns; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are served", len(f.broker.free))
		}
	}
	f.broker.Close()
	if n := len(f.broker.conns); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	for _, c := range open {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("after the run: %v", err)
		}
	}
}

// TestFaultOfAConnectionToANameIsItsOwn: it reaches nothing, and the next is served.
func TestFaultOfAConnectionToANameIsItsOwn(t *testing.T) {
	f, at := byName(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, "tls", Name{Host: "example.com"})
	for _, point := range []string{"egress: deciding", "connecting to a host", "accepting a connection of a run", "egress: usage locked"} {
		t.Run(point, func(t *testing.T) {
			contain.Inject(t, func(at string) bool { return at == point })
			if got, err := f.over(dialName(t, at[0]), "example.com", "example.com", "/"); err == nil {
				t.Errorf("it passed: %s", got)
			}
		})
		if got, err := f.over(dialName(t, at[0]), "example.com", "example.com", "/"); err != nil {
			t.Errorf("after a fault at %s: %q, %v", point, got, err)
		}
	}
}
