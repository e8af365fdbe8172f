package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestPlainRequestsGoToTheProxyInAbsoluteForm: many proxies connect to port 443 only.
func TestPlainRequestsGoToTheProxyInAbsoluteForm(t *testing.T) {
	var asked []string
	corporate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		switch {
		case r.Method == http.MethodConnect:
			http.Error(w, "only to port 443", http.StatusForbidden)
		case r.URL.Host == "locked.test":
			w.Header().Set("Proxy-Authenticate", "Basic")
			http.Error(w, "log in", http.StatusProxyAuthRequired)
		default:
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "for %s: %s", r.URL.Host, body)
		}
	}))
	defer corporate.Close()
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"plain.test", "other.test", "locked.test", "own.test", "8.8.8.8"}},
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "http" || r.URL.Hostname() == "own.test" {
				return nil, nil
			}
			u, _ := url.Parse(corporate.URL)
			u.User = url.UserPassword("a", "b")
			return u, nil
		},
	}, hello)
	const end = " HTTP/1.1\r\nHost: secret.test\r\nProxy-Authorization: Basic eA==\r\nConnection: close\r\n"
	for _, c := range []struct{ request, asked, want string }{
		{"GET http://plain.test/x?y" + end + "\r\n", "GET http://plain.test/x?y plain.test Basic YTpi", "200 OK|for plain.test: "},
		{"GET http://PLAIN.test.:080/x" + end + "\r\n", "GET http://plain.test/x plain.test Basic YTpi", "200 OK|for plain.test: "},
		{"POST http://other.test:8080/" + end + "Content-Length: 4\r\n\r\nbody", "POST http://other.test:8080/ other.test:8080 Basic YTpi", "200 OK|for other.test:8080: body"},
		{"GET http://locked.test/" + end + "\r\n", "GET http://locked.test/ locked.test Basic YTpi", "502 toolcell: the proxy of the host answered with status 407|"},
		{"GET http://8.8.8.8/" + end + "\r\n", "", "502 toolcell: 8.8.8.8 is an address, and only names pass|"},
	} {
		asked = nil
		status, body, _ := strings.Cut(c.want, "|")
		if got := f.raw(c.request); !strings.HasPrefix(got, "HTTP/1.1 "+status) || !strings.Contains(got, body) {
			t.Errorf("%q: %q, want %q", c.request, got, c.want)
		}
		if got := strings.Join(asked, "; "); got != c.asked {
			t.Errorf("%q: the proxy was asked %q, want %q", c.request, got, c.asked)
		}
	}
	if !f.broker.ThroughProxy() {
		t.Error("a proxy was used, and it does not say so")
	}
	for _, use := range f.broker.Uses() {
		if passed := use.BytesReceived > 0; passed != (use.Host != "8.8.8.8") {
			t.Errorf("the use is %+v", use)
		}
	}
	asked = nil
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if got := f.raw("GET http://own.test:" + port + "/" + end + "\r\n"); !strings.Contains(got, "GET / of own.test:"+port) || asked != nil {
		t.Errorf("a host that the environment excepts: %q; the proxy was asked %q", got, asked)
	}
}

func TestThroughTheProxyOfTheHost(t *testing.T) {
	var seen atomic.Value
	corporate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
		_, port, _ := net.SplitHostPort(r.RequestURI)
		server, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Error(err)
			return
		}
		c, _, _ := http.NewResponseController(w).Hijack()
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(server, c); server.Close() }()
		_, _ = io.Copy(c, server)
		c.Close()
	}))
	defer corporate.Close()
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"example.com", "8.8.8.8"}, private: func(string, netip.Addr) bool { return false }},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, errors.New("names are resolved there")
		},
		Proxy: func(*http.Request) (*url.URL, error) {
			u, _ := url.Parse(corporate.URL)
			u.User = url.UserPassword("a", "b")
			return u, nil
		},
	}, hello)
	if f.broker.ThroughProxy() {
		t.Error("a proxy was used before there was a connection")
	}
	status, _, err := f.get(f.url("example.com", "/"))
	if status != 200 || err != nil || !f.broker.ThroughProxy() {
		t.Fatal(status, err)
	}
	if got := f.raw("CONNECT 8.8.8.8:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: 8.8.8.8 is an address, and only names") {
		t.Errorf("an address: %q", got)
	}
	if got := seen.Load().(string); !strings.HasPrefix(got, "CONNECT example.com:") || !strings.HasSuffix(got, " Basic YTpi") {
		t.Errorf("the proxy was asked %q", got)
	}
}

// TestProxiesThatAreNotUsed: nothing goes there, or past them. The address of one may have a
// password.
func TestProxiesThatAreNotUsed(t *testing.T) {
	for address, want := range map[string]string{
		"http://user:hunter2@[x":          "the environment of toolcell names a proxy that is not understood",
		"socks5://user:hunter2@" + closed: `the proxy of the host has the scheme "socks5"; http and https are supported`,
		"http://user:hunter2@" + closed:   "connecting to the proxy of the host: connection refused",
		"https://user:hunter2@" + closed:  "connecting to the proxy of the host: connection refused",
	} {
		f := newFixture(t, Options{
			Rules: testRules{hosts: []string{"example.com"}},
			Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(address) },
		}, hello)
		_, port, _ := net.SplitHostPort(f.server.Listener.Addr().String())
		for _, request := range []string{"CONNECT example.com:" + port, "GET http://example.com:" + port + "/"} {
			if got := f.raw(request + " HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+want+"\r\n") || strings.Contains(got, "hunter2") {
				t.Errorf("%s through %s: %q, want %q", request, address, got, want)
			}
		}
	}
}

// TestProxiesThatDoNotConnect are left, and the code is told why.
func TestProxiesThatDoNotConnect(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 403 Forbidden\r\n\r\n": "the proxy of the host answered with status 403",
		"HTTP/1.1 204 No\r\n\r\n":        "the proxy of the host answered with status 204",
		"220 mail.example ESMTP\r\n\r\n": "the proxy of the host did not answer as a proxy does",
	} {
		port, conns := listenRaw(t)
		f := newFixture(t, Options{
			Rules: testRules{hosts: []string{"example.com"}},
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port}),
		}, hello)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c := <-conns
			_, _ = http.ReadRequest(bufio.NewReader(&oneByteReader{c}))
			_, _ = io.WriteString(c, answer)
			wantEnd(t, "the proxy", c, nil)
			c.Close()
		}()
		if got := f.raw("CONNECT example.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+want+"\r\n") {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
		<-ended
	}
}

// TestAProxyWithTLSIsAskedInTLS only: the request has its password.
func TestAProxyWithTLSIsAskedInTLS(t *testing.T) {
	var asked atomic.Int32
	corporate := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	corporate.Config.ErrorLog = log.New(io.Discard, "", 0)
	var serverName atomic.Value
	corporate.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		serverName.Store(h.ServerName)
		return nil, nil
	}}
	corporate.StartTLS()
	defer corporate.Close()
	_, port, _ := net.SplitHostPort(corporate.Listener.Addr().String())
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"example.com"}},
		Proxy: http.ProxyURL(&url.URL{Scheme: "https", Host: "localhost:" + port, User: url.UserPassword("a", "b")}),
	}, hello)
	// No authority of this host has signed its certificate.
	got := f.raw("CONNECT example.com:443 HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: asking the proxy of the host: tls: failed to verify certificate") {
		t.Errorf("%q", got)
	}
	if asked.Load() != 0 || serverName.Load() != "localhost" {
		t.Errorf("the proxy was asked %d times, the handshake was for %v", asked.Load(), serverName.Load())
	}
}

// TestInspectedRequestsGoThroughATunnel of the proxy, which sees none of their headers; so its
// password in an answer is only a word. At the usual port, the header Host has no port.
func TestInspectedRequestsGoThroughATunnel(t *testing.T) {
	var f *fixture
	var asked []string
	corporate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		server, err := net.Dial("tcp", f.server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		c, _, _ := http.NewResponseController(w).Hijack()
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(server, c); server.Close() }()
		_, _ = io.Copy(c, server)
		c.Close()
	}))
	defer corporate.Close()
	proxy, err := url.Parse(corporate.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.User = url.UserPassword("user", "pass-w0rd")
	o := inspecting("GET /*")
	o.Proxy = http.ProxyURL(proxy)
	f = newFixture(t, o, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+": pass-w0rd") })
	status, body, err := f.get("https://example.com/x")
	if status != 200 || body != "example.com: pass-w0rd" || err != nil {
		t.Errorf("%d %q, error %v", status, body, err)
	}
	if got := strings.Join(asked, "; "); got != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked %q", got)
	}
}

// TestAProxyWithoutAPasswordHidesNothing in what it passes on: Og== is that of an empty one.
func TestAProxyWithoutAPasswordHidesNothing(t *testing.T) {
	corporate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Og==") }))
	defer corporate.Close()
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"plain.test"}},
		Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(corporate.URL) },
	}, hello)
	if got := f.raw("GET http://plain.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nOg==") {
		t.Errorf("%q", got)
	}
}
