package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/text"
)

const maxRedirects = 5

// newClient returns a client for the authorization server of the server at address.
// What is posted is secret and goes only where it was meant to go. Documents and their
// redirects name further addresses, so a server on the Internet could have us ask
// hosts that only this one can reach: those are for servers that are such hosts
// themselves.
func newClient(address string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // proxies and certificates as everywhere
	transport.MaxResponseHeaderBytes = 1 << 20
	transport.DisableKeepAlives = true // a login is a few requests, and there is none for hours
	if !usesProxy() {                  // else the address is the proxy's
		transport.DialContext = newDialGuard(address).dial
	}
	return &http.Client{
		Transport: boundedAnswers{transport}, Timeout: renewWithin,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet || len(via) > maxRedirects || checkAddress(req.URL.String()) != nil {
				return errors.New("the authorization server redirects a request that must not be redirected")
			}
			return nil
		},
	}
}

// maxAnswer bounds the answer of an authorization server to a POST: a token, or a
// registration. Libraries decode all of it.
const maxAnswer = 256 << 10

// boundedAnswers bounds the answers to POST requests.
type boundedAnswers struct{ inner http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.inner.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is larger than %s", text.Size(maxAnswer))
	}
	return n, err
}

// A dialGuard keeps a server on the internet from leading us to hosts that only this one
// can reach.
type dialGuard struct{ serverIsOurs func() bool }

func newDialGuard(address string) dialGuard {
	return dialGuard{sync.OnceValue(contain.Value("looking up a server", false, func() bool {
		u, err := url.Parse(address)
		return err == nil && isOurs(u.Hostname())
	}))}
}

// dial connects for package http, which may call it in a goroutine of its own, as
// package net does with checkAddress.
func (g dialGuard) dial(ctx context.Context, network, address string) (_ net.Conn, err error) {
	defer contain.Error("connecting to an authorization server", &err)
	dialer := net.Dialer{Timeout: renewWithin, Control: g.checkAddress}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return g.checkConn(c)
}

func (g dialGuard) checkAddress(_, to string, _ syscall.RawConn) (err error) {
	defer contain.Error("checking an address", &err)
	at, err := netip.ParseAddrPort(to)
	if err == nil && netguard.IsInternal(at.Addr()) && !g.serverIsOurs() {
		return internalError(at.Addr().String())
	}
	return err
}

// checkConn closes a connection to this host at an address that says nothing of it.
func (g dialGuard) checkConn(c net.Conn) (net.Conn, error) {
	if netguard.LeadsHere(c) && !g.serverIsOurs() {
		c.Close()
		return nil, internalError(c.RemoteAddr().String())
	}
	return c, nil
}

func internalError(address string) error {
	return fmt.Errorf("%s is an address of this host or its network, to which a server on the Internet must not lead", address)
}

// isOurs reports whether all addresses of a host are of this one or its network.
func isOurs(host string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	here, hereErr := netguard.InterfaceAddresses()
	return err == nil && hereErr == nil && len(all) > 0 && !slices.ContainsFunc(all, func(a netip.Addr) bool {
		return !netguard.IsOwn(a) && !here[a.Unmap().WithZone("")]
	})
}

func usesProxy() bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: "authorization.example"}})
	return err != nil || proxy != nil
}
