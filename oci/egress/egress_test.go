package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/netguard"
)

// testRules allow hosts, and of inspected ones "METHOD /path" globs.
type testRules struct {
	hosts     []string
	inspected map[string][]string
	private   func(host string, addr netip.Addr) bool
}

// closed is an address where nothing listens. A port that a test has just closed may be
// another's by now; none is given this one.
const closed = "127.0.0.1:1"

func (r testRules) CanonicalHost(host string) (string, error) {
	return strings.ToLower(strings.TrimSuffix(host, ".")), nil
}

func (r testRules) AllowHost(_, host string, _ uint16) (string, error) {
	if slices.Contains(r.hosts, host) || r.inspected[host] != nil {
		return host, nil
	}
	return "", fmt.Errorf("add %q to [network] allow", host)
}

func (r testRules) ExplainName(host string) (string, error) {
	return "", fmt.Errorf("add %q to [network] allow", host)
}

func (r testRules) AllowRequest(method, scheme, host string, port uint16, p string) (string, error) {
	for _, rule := range r.inspected[host] {
		if ok, _ := path.Match(rule, method+" "+p); ok {
			return rule, nil
		}
	}
	if r.inspected[host] != nil {
		return "", fmt.Errorf("add %q to [network] allow", method+" "+p)
	}
	return r.AllowHost(scheme, host, port)
}

func (r testRules) Inspected(_, host string, _ uint16) bool { return r.inspected[host] != nil }

func (r testRules) AllowPrivate(host string, addr netip.Addr) bool {
	return r.private == nil || r.private(host, addr)
}

// A fixture is a broker and a TLS server behind it, which has the certificate of
// example.com and 127.0.0.1, or its own.
type fixture struct {
	t      *testing.T
	broker *Broker
	server *httptest.Server
	proxy  string // the broker's address
}

func newFixture(t *testing.T, o Options, h http.HandlerFunc, own ...tls.Certificate) *fixture {
	t.Helper()
	f := &fixture{t: t, server: httptest.NewUnstartedServer(h)}
	f.server.TLS = &tls.Config{Certificates: own}
	f.server.Config.ErrorLog = nil
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(f.server.Certificate())
	if o.Roots == nil {
		o.Roots = roots
	}
	if o.Resolve == nil {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	}
	f.proxy, f.broker = startBroker(t, o)
	return f
}

func startBroker(t *testing.T, o Options) (addr string, b *Broker) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Start(l, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return l.Addr().String(), b
}

// client trusts what the code in a sandbox would: the server, and the broker.
func (f *fixture) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(f.server.Certificate())
	roots.AppendCertsFromPEM(f.broker.Certificate())
	proxy := &url.URL{Scheme: "http", Host: f.proxy}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (f *fixture) url(host, path string) string {
	_, port, _ := net.SplitHostPort(f.server.Listener.Addr().String())
	return "https://" + net.JoinHostPort(host, port) + path
}

// raw sends bytes to the broker, and returns everything that comes back.
func (f *fixture) raw(text string) string {
	f.t.Helper()
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		f.t.Fatal(err)
	}
	all, _ := io.ReadAll(c)
	return string(all)
}

func (f *fixture) get(url string) (status int, body string, err error) {
	resp, err := f.client().Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

func hello(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s of %s", r.Method, r.RequestURI, r.Host)
}

func TestTunnelReachesAnAllowedHost(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	status, body, err := f.get(f.url("example.com", "/a%2fb/../c?x;y"))
	if err != nil || status != 200 || !strings.HasPrefix(body, "GET /a%2fb/../c?x;y of example.com:") {
		t.Errorf("%d %q, error %v", status, body, err)
	}
	uses := f.broker.Uses()
	if len(uses) != 1 || uses[0].Host != "example.com" || uses[0].Requests != 1 || uses[0].BytesSent == 0 || uses[0].Rule != "example.com" {
		t.Errorf("uses are %+v", uses)
	}
}

func TestRefusalIsInTheStatusLine(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{}}, hello)
	if got := f.raw("CONNECT other.com:443 HTTP/1.1\r\nHost: other.com:443\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 toolcell: add \"other.com\" to [network] allow\r\n") {
		t.Errorf("CONNECT: %q", got)
	}
	if got := f.raw("GET http://other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 toolcell: add \"other.com\"") {
		t.Errorf("GET: %q", got)
	}
	if got := f.raw("GET / HTTP/1.1\r\nHost: other.com\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 toolcell: this is a proxy") {
		t.Errorf("a request in origin form: %q", got)
	}
	if uses := f.broker.Uses(); uses[0].Host != "other.com" || uses[0].Refused != 1 {
		t.Errorf("uses are %+v", uses)
	}
	if reasons := f.broker.Refusals(); !slices.Contains(reasons, `add "other.com" to [network] allow`) {
		t.Errorf("reasons are %q", reasons)
	}
}

// Nothing from a request may begin a line of the answer.
func TestRefusalHasOneLine(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{}}, hello)
	got := f.raw("GET http://x%0d%0aSet-Cookie:a/ HTTP/1.1\r\nHost: x\r\n\r\n")
	if strings.Contains(got, "\nSet-Cookie") {
		t.Errorf("%q", got)
	}
}

func TestTunnelTakesOnlyTLSForItsHost(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com", "127.0.0.1"}}}, hello)
	_, port, _ := net.SplitHostPort(f.server.Listener.Addr().String())
	connect := func(host string) net.Conn {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "CONNECT %s:%s HTTP/1.1\r\nHost: evil\r\n\r\n", host, port)
		wantConnected(t, c)
		return c
	}
	for name, c := range map[string]struct {
		host, serverName string
		ok               bool
	}{
		"the host":             {"example.com", "example.com", true},
		"in capitals":          {"example.com", "EXAMPLE.com", true},
		"another host":         {"example.com", "other.com", false},
		"no name":              {"example.com", "", false},
		"an address":           {"127.0.0.1", "", true},
		"a name at an address": {"127.0.0.1", "example.com", false},
	} {
		conn := connect(c.host)
		err := tls.Client(conn, &tls.Config{ServerName: c.serverName, InsecureSkipVerify: true}).Handshake()
		if (err == nil) != c.ok {
			t.Errorf("%s: error %v", name, err)
		}
		conn.Close()
	}
	for name, text := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"SSH":  "SSH-2.0-x\r\n",
		"a truncated handshake and then something else": "\x16\x03\x01\x00\x02\x01\x00CONNECT",
	} {
		conn := connect("example.com")
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("%s: %q came back", name, got)
		}
		conn.Close()
	}
}

// A handshake may come in pieces, and in the packet of the CONNECT itself.
func TestTunnelTakesAHandshakeInAnyPieces(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	_, port, _ := net.SplitHostPort(f.server.Listener.Addr().String())
	var first bytes.Buffer
	recordHello(&first, "example.com")
	for _, at := range []int{0, 1, 5, 50, first.Len()} {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "CONNECT example.com:%s HTTP/1.1\r\n\r\n%s", port, first.Bytes()[:at])
		wantConnected(t, c)
		_, _ = c.Write(first.Bytes()[at:])
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil || head[0] != 22 {
			t.Errorf("cut at %d: the server's hello is % x, error %v", at, head, err)
		}
		c.Close()
	}
}

// wantConnected reads the answer to a CONNECT, and no more.
func wantConnected(t *testing.T, c net.Conn) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(&oneByteReader{c}), nil) //nolint:bodyclose // the tunnel is what follows
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
}

// recordHello writes the first message of a client.
func recordHello(w io.Writer, serverName string) {
	_ = tls.Client(&recordConn{w: w}, &tls.Config{ServerName: serverName}).Handshake()
}

// A recordConn keeps what is written, and has nothing to read.
type recordConn struct {
	net.Conn
	w io.Writer
}

func (c *recordConn) Write(p []byte) (int, error)      { return c.w.Write(p) }
func (c *recordConn) Read([]byte) (int, error)         { return 0, io.EOF }
func (c *recordConn) SetDeadline(time.Time) error      { return nil }
func (c *recordConn) SetReadDeadline(time.Time) error  { return nil }
func (c *recordConn) SetWriteDeadline(time.Time) error { return nil }
func (c *recordConn) Close() error                     { return nil }

func TestForwardSendsWhatTheAddressSays(t *testing.T) {
	var host atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		if r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("the server got %v", r.Header)
		}
		hello(w, r)
	}))
	defer server.Close()
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}}, hello)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	got := f.raw("GET http://plain.test:" + port + "/x HTTP/1.1\r\nHost: secret.test\r\nProxy-Authorization: Basic eA==\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "GET /x of plain.test:"+port) {
		t.Errorf("%q", got)
	}
	for name, request := range map[string]string{
		"https in absolute form": "GET https://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n",
		"another scheme":         "GET ftp://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n",
		"an upgrade":             "GET http://plain.test:" + port + "/ HTTP/1.1\r\nHost: plain.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"two lengths":            "POST http://plain.test:" + port + "/ HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a port out of range":    "GET http://plain.test:99999/ HTTP/1.1\r\nHost: plain.test\r\n\r\n",
		"no port to connect to":  "CONNECT plain.test HTTP/1.1\r\nHost: plain.test\r\n\r\n",
	} {
		if got := f.raw(request); !strings.HasPrefix(got, "HTTP/1.1 4") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestANameWithoutADotIsFoundInTheHostsFile: every /etc/hosts has localhost, and no name
// server needs to.
func TestANameWithoutADotIsFoundInTheHostsFile(t *testing.T) {
	addrs, err := resolve(t.Context(), "localhost")
	if err != nil || len(addrs) == 0 || !addrs[0].Unmap().IsLoopback() {
		t.Errorf("localhost is %v, %v", addrs, err)
	}
}

func TestAHostWithOnePrivateAddressIsNotDialed(t *testing.T) {
	never := func(string, netip.Addr) bool { return false }
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"example.com"}, private: never},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
		},
	}, hello)
	got := f.raw("CONNECT example.com:443 HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 403 toolcell: example.com has the address 127.0.0.1, which is not a public one") {
		t.Errorf("%q", got)
	}
}

func TestAHostOfOurOwnIsNotDialed(t *testing.T) {
	own, err := netguard.InterfaceAddresses()
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{o: Options{Rules: testRules{private: func(string, netip.Addr) bool { return false }}}}
	for addr := range own {
		if _, err := b.addresses(t.Context(), addr.String()); err == nil {
			t.Errorf("%s may be dialed", addr)
		}
	}
}

// A name that answers another address the second time is not asked a second time.
func TestNamesAreLookedUpOnce(t *testing.T) {
	var asked atomic.Int32
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"example.com"}},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			asked.Add(1)
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}, hello)
	if status, _, err := f.get(f.url("example.com", "/")); status != 200 {
		t.Fatal(status, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the name was looked up %d times for one connection", n)
	}
}

func TestFailuresToConnectAreSaidPlainly(t *testing.T) {
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"gone.test", "127.0.0.1"}},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "gone.test", IsNotFound: true}
		},
	}, hello)
	for request, want := range map[string]string{
		"CONNECT gone.test:443":      "502 toolcell: looking up gone.test: there is no such host\r\n",
		"CONNECT " + closed:          "502 toolcell: connecting to " + closed + ": connection refused\r\n",
		"GET http://" + closed + "/": "502 toolcell: connecting to " + closed + ": connection refused\r\n",
	} {
		if got := f.raw(request + " HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%s: %q", request, got)
		}
	}
	for _, use := range f.broker.Uses() {
		if use.Requests != 0 || use.Refused == 0 {
			t.Errorf("nothing was reached, and %+v", use)
		}
	}
}

func TestBytesAreBounded(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}, MaxBytes: 3 << 20}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(w, zeros{}, 64<<20)
	})
	_, body, err := f.get(f.url("example.com", "/"))
	if err == nil || len(body) > 6<<20 {
		t.Errorf("%d bytes came, error %v", len(body), err)
	}
	f.broker.Close()
	if reasons := f.broker.Refusals(); !slices.Contains(reasons, errBytes.Error()) {
		t.Errorf("reasons are %q", reasons)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestConnectionsAreBounded(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{}}, hello)
	var all []net.Conn
	for range maxConns {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	ask := func() (net.Conn, chan string) {
		c, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan string, 1)
		go func() {
			fmt.Fprintf(c, "CONNECT other.com:443 HTTP/1.1\r\n\r\n")
			line, _ := bufio.NewReader(c).ReadString('\n')
			answer <- line
		}()
		return c, answer
	}
	c, answer := ask()
	defer c.Close()
	select {
	case line := <-answer:
		t.Fatalf("one connection more than may be was answered: %q", line)
	case <-time.After(50 * time.Millisecond): // it cannot come: all slots are taken
	}
	all[0].Close()
	if line := <-answer; !strings.Contains(line, "403") {
		t.Errorf("after one had ended: %q", line)
	}
}

func TestCloseEndsTunnels(t *testing.T) {
	started := make(chan struct{})
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}, inspected: map[string][]string{"in.test": {"GET /*"}}}, Inspect: []string{"in.test"}}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		started <- struct{}{}
		<-r.Context().Done()
	})
	tr := f.client().Transport.(*http.Transport)
	tr.TLSClientConfig.InsecureSkipVerify = true
	f.broker.transport.TLSClientConfig.InsecureSkipVerify = true
	for _, host := range []string{"example.com", "in.test"} {
		resp, err := tr.RoundTrip(httptest.NewRequest("GET", f.url(host, "/"), nil).WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		<-started
		defer func() {
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s: the answer ended as if it were whole", host)
			}
		}()
	}
	f.broker.Close()
	if _, err := net.Dial("tcp", f.proxy); err == nil {
		t.Error("the broker still listens")
	}
}

// Everything that a client sends along with its handshake arrives.
func TestTunnelLosesNothingBehindTheHandshake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		got <- all
	}()
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com"}}}, hello)
	var first bytes.Buffer
	recordHello(&first, "example.com")
	sent := first.String() + strings.Repeat("early", 400)
	c, err := net.Dial("tcp", f.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Fprintf(c, "CONNECT example.com:%s HTTP/1.1\r\n\r\n%s", port, sent)
	wantConnected(t, c)
	_ = c.(*net.TCPConn).CloseWrite()
	if all := <-got; string(all) != sent {
		t.Errorf("%d of %d bytes arrived", len(all), len(sent))
	}
}

// TestNoRulesStartNothing: without rules there is nothing that would refuse.
func TestNoRulesStartNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Start(l, Options{}); err == nil {
		b.Close()
		t.Error("it has started")
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("something listens still")
	}
}
