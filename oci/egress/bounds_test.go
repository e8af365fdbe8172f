package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestHeadersOfAnswersAreBounded in bytes and in lines: code may ask for 64 at once, and
// hold them by reading nothing.
func TestHeadersOfAnswersAreBounded(t *testing.T) {
	var header string
	f := newFixture(t, inspecting("GET /*"), func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+header+"Content-Length: 2\r\nConnection: close\r\n\r\nok")
	})
	for name, c := range map[string]struct{ header, want string }{
		"usual":        {strings.Repeat("Set-Cookie: 0123456789\r\n", 100), "200 OK"},
		"20 KiB":       {"A: " + strings.Repeat("a", 20<<10) + "\r\n", "200 OK"},
		"1 MB":         {"A: " + strings.Repeat("a", 1<<20) + "\r\n", "502 toolcell: example.com did not answer"},
		"1 MB in some": {strings.Repeat("A: "+strings.Repeat("a", 1000)+"\r\n", 1000), "502 toolcell: example.com did not answer"},
		"1,000 lines":  {strings.Repeat("A:\r\n", 1000), "403 toolcell: a header of more than 500 lines"},
	} {
		header = c.header
		if got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+c.want) {
			t.Errorf("%s: %.200q, want %s", name, got, c.want)
		}
	}
}

// TestRefusalsAreBounded: they end up in the run's result, and quote what the code sent.
func TestRefusalsAreBounded(t *testing.T) {
	f := newFixture(t, inspecting("GET /*"), hello)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		raw, err := net.Dial("tcp", f.proxy)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(raw, "CONNECT %s HTTP/1.1\r\n\r\n", f.hostPort())
		wantConnected(t, raw)
		if err := tls.Client(raw, &tls.Config{ServerName: strings.Repeat(name, 60_000), InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Error("the handshake succeeded")
		}
		raw.Close()
	}
	f.raw("GET http://" + strings.Repeat("h", 30_000) + "/ HTTP/1.1\r\n\r\n")
	f.raw("CONNECT " + strings.Repeat("h", 30_000) + ":443 HTTP/1.1\r\n\r\n")
	all := f.broker.Refusals()
	if len(all) != maxReasons {
		t.Errorf("%d refusals", len(all))
	}
	for _, r := range all {
		if len(r) > 400 {
			t.Errorf("a refusal of %d bytes: %.100q", len(r), r)
		}
	}
	for _, use := range f.broker.Uses() {
		if len(use.Host) > 400 {
			t.Errorf("a host of %d bytes", len(use.Host))
		}
	}
}

// TestAnAddressRoutedToThisHostIsNotPublic: no interface has it, and what listens on all
// addresses answers there.
func TestAnAddressRoutedToThisHostIsNotPublic(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	runtime.LockOSThread() // and never unlocks: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	own, _ := netlink.ParseAddr("10.0.0.1/32")
	if err == nil {
		err = netlink.AddrAdd(lo, own)
	}
	// With a hint for its source, the two ends of a connection differ.
	for to, src := range map[string]net.IP{"9.9.9.0/24": nil, "8.8.8.0/24": own.IP} {
		if err == nil {
			_, dst, _ := net.ParseCIDR(to)
			err = netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Src: src, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	for _, addr := range []string{"9.9.9.9", "8.8.8.8"} {
		for _, private := range []bool{false, true} {
			b := &Broker{o: Options{
				Rules: testRules{private: func(string, netip.Addr) bool { return private }},
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(addr)}, nil
				},
			}}
			b.large.servers = newSlots()
			c, err := b.dialDirectly(t.Context(), "example.com", port)
			if err == nil {
				c.Close()
			}
			if (err == nil) != private || err != nil && !strings.Contains(err.Error(), addr+", which is not a public one") {
				t.Errorf("%s, private %v: %v", addr, private, err)
			}
			if n := len(b.large.servers); n != 0 {
				t.Errorf("%s, private %v: %d connections are open still", addr, private, n)
			}
		}
	}
}

// TestTheProxysPasswordDoesNotComeBack: a proxy of the host gets it with each request
// without TLS, and some show what they got.
func TestTheProxysPasswordDoesNotComeBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Max-Forwards") != "" {
			t.Error("the proxy was told to answer itself")
		}
		w.Header().Set("X-Got", r.Header.Get("Proxy-Authorization"))
		_, _ = io.WriteString(w, "got "+r.Header.Get("Proxy-Authorization")+", the password is pass-w0rd")
	})}
	go func() { _ = proxy.Serve(l) }()
	t.Cleanup(func() { proxy.Close() })
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"plain.test"}}, Proxy: http.ProxyURL(&url.URL{
		Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("user", "pass-w0rd"),
	})}, hello)
	for _, method := range []string{"GET", "OPTIONS"} {
		got := f.raw(method + " http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || strings.Contains(got, "w0rd") || strings.Contains(got, "dXNlcj") {
			t.Errorf("%q", got)
		}
	}
	if got := f.raw("TRACE http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\nMax-Forwards: 0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 toolcell: TRACE") {
		t.Errorf("%q", got)
	}
}
