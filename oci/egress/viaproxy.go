package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/netguard"
)

// proxyFor returns the proxy for a host, or nil.
func (b *Broker) proxyFor(scheme string, t target) (*url.URL, error) {
	if b.o.Proxy == nil {
		return nil, nil
	}
	proxy, err := b.o.Proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: t.String()}})
	if err != nil { // its text may have the proxy's password
		return nil, errors.New("the environment of toolcell names a proxy that is not understood")
	}
	if proxy == nil {
		return nil, nil
	}
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fmt.Errorf("the proxy of the host has the scheme %q; http and https are supported", proxy.Scheme)
	}
	if _, err := netip.ParseAddr(t.host); err == nil {
		return nil, fmt.Errorf("%s is an address, and only names pass through the proxy of the host", t.host)
	}
	return proxy, nil
}

// plainProxy sends a request without TLS to the proxy of the host in absolute form, as
// proxies expect: many take CONNECT for port 443 only. The fragment keeps connections for
// different hosts apart, since bytes are counted per host.
func (b *Broker) plainProxy(r *http.Request) (*url.URL, error) {
	to, _ := r.Context().Value(destinationKey{}).(destination)
	if to.scheme != "http" {
		return nil, nil // dial goes through it
	}
	proxy, err := b.proxyFor(to.scheme, to.target)
	if err != nil {
		return nil, &dialError{err}
	}
	if proxy == nil {
		return nil, nil
	}
	own := *proxy
	own.Fragment = to.String()
	return &own, nil
}

// proxyCredential returns the credential that is sent to the proxy of the host with a
// request, so that it can be hidden in the response.
func (b *Broker) proxyCredential(scheme string, t target) []Credential {
	if scheme != "http" { // the host's end of a tunnel, where no proxy sees a header
		return nil
	}
	proxy, err := b.proxyFor(scheme, t)
	if err != nil || proxy == nil || proxy.User == nil {
		return nil
	}
	password, _ := proxy.User.Password()
	c := Credential{Placeholder: "(the proxy's password)", Secrets: []string{basicAuth(proxy.User)}}
	if len(password) >= minEncoded { // a shorter one stands in any text
		c.Secrets = append(c.Secrets, password)
	}
	return []Credential{c}
}

func basicAuth(user *url.Userinfo) string {
	password, _ := user.Password()
	return base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
}

// dialProxy connects to a proxy.
func (b *Broker) dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	b.throughProxy.Store(true)
	c, err := b.dialSocket(ctx, net.JoinHostPort(proxy.Hostname(), netguard.Port(proxy)))
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy of the host: %w", plain(err))
	}
	return c, nil
}

// dialThrough connects through a proxy (RFC 9110, 9.3.6).
func (b *Broker) dialThrough(ctx context.Context, proxy *url.URL, target string) (_ net.Conn, err error) {
	c, err := b.dialProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if proxy.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: proxy.Hostname()})
	}
	stop := context.AfterFunc(ctx, contain.Func("giving up on a proxy", func() { _ = c.SetDeadline(time.Unix(1, 0)) }))
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user := proxy.User; user != nil {
		request.Header.Set("Proxy-Authorization", "Basic "+basicAuth(user))
	}
	if err := request.Write(c); err != nil {
		return nil, fmt.Errorf("asking the proxy of the host: %w", plain(err))
	}
	if err := readProxyAnswer(c, request); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	return c, nil
}

// readProxyAnswer reads the header of a response, and nothing after it.
func readProxyAnswer(c io.Reader, request *http.Request) error {
	head := &oneByteReader{io.LimitReader(c, maxHeader)}
	resp, err := http.ReadResponse(bufio.NewReaderSize(head, 16), request) //nolint:bodyclose // the connection follows it
	if err != nil {                                                        // its text may have what was sent, and so the password
		return errors.New("the proxy of the host did not answer as a proxy does")
	}
	if resp.StatusCode != http.StatusOK {
		return proxyStatus(resp.StatusCode)
	}
	return nil
}

func proxyStatus(status int) error {
	return fmt.Errorf("the proxy of the host answered with status %d", status)
}

type oneByteReader struct{ inner io.Reader }

func (r *oneByteReader) Read(p []byte) (int, error) { return r.inner.Read(p[:min(len(p), 1)]) }
