package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	dialTimeout   = 5 * time.Second // names and connection together
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
	stallTimeout  = 60 * time.Second // without a single byte of a body
)

// defaultTransport gives up on a dead network within seconds, and never on a
// slow one that still delivers.
var defaultTransport http.RoundTripper = &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
	ForceAttemptHTTP2:     true,
	TLSHandshakeTimeout:   tlsTimeout,
	ResponseHeaderTimeout: headerTimeout,
	ExpectContinueTimeout: time.Second,
	IdleConnTimeout:       30 * time.Second,
	MaxIdleConnsPerHost:   4,
}

// guard holds every request of a pull to rules that the registry library does
// not have.
type guard struct{ inner http.RoundTripper }

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	// The library falls back to http for private addresses too, and a redirect
	// may lead anywhere: credentials and unverified tags would be open to
	// everyone on the way.
	if req.URL.Scheme != "https" && !loopback(req.URL.Hostname()) {
		return nil, fmt.Errorf("%w: %s://%s", errPlain, req.URL.Scheme, req.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := g.inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &stallBody{inner: resp.Body, ctx: ctx, cancel: cancel, timeout: stallTimeout, left: -1}
	if strings.Contains(req.URL.Path, "/manifests/") {
		body.left = maxManifest
	}
	resp.Body = body
	return resp, nil
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

var (
	errPlain   = errors.New("only https is spoken to registries beyond this host")
	errStalled = errors.New("the registry sent nothing for a minute")
	errTooLong = fmt.Errorf("the manifest has more than %d bytes", maxManifest)
)

// stallBody ends a response that sends nothing for too long, and one of a
// manifest that is too long. What breaks in it is the registry's failure.
type stallBody struct {
	inner   io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration
	left    int64 // bytes that may still come, -1 for any number
}

func (b *stallBody) Read(p []byte) (int, error) {
	// The clock runs only while we wait: an unpacker may take its time.
	timer := time.AfterFunc(b.timeout, func() { b.cancel(errStalled) })
	n, err := b.inner.Read(p)
	timer.Stop()
	switch {
	case b.left >= 0 && int64(n) > b.left:
		return 0, errTooLong
	case b.left >= 0:
		b.left -= int64(n)
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(context.Cause(b.ctx), errStalled):
		return n, fmt.Errorf("%w: %w", ErrUnavailable, errStalled)
	case b.ctx.Err() != nil:
		return n, context.Cause(b.ctx)
	}
	return n, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (b *stallBody) Close() error {
	err := b.inner.Close()
	b.cancel(nil)
	return err
}
