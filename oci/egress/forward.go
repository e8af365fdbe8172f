package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// newTransport returns the transport for requests to servers.
func (b *Broker) newTransport() *http.Transport {
	return &http.Transport{
		Proxy: b.plainProxy,
		DialContext: func(ctx context.Context, _, _ string) (_ net.Conn, err error) {
			defer contain.Error("connecting to a host", &err) // net/http calls this in a goroutine of its own
			to, _ := ctx.Value(destinationKey{}).(destination)
			c, err := b.dial(ctx, to)
			if err != nil {
				return nil, &dialError{err}
			}
			return &countedConn{Conn: c, usage: b.usage, target: to.target}, nil
		},
		TLSClientConfig:        &tls.Config{RootCAs: b.o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    b.o.DialTimeout,
		Protocols:              http1(),
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        maxConns,
		IdleConnTimeout:        time.Minute,
		ExpectContinueTimeout:  time.Second,
	}
}

// A destination is the target of a request, kept in its context.
type destination struct {
	scheme string
	target
}

type destinationKey struct{}

// header returns the value of Host: the name in the form that the rules were checked with,
// so that no server or proxy can read another one.
func (d destination) header() string {
	if d.scheme == "http" && d.port == 80 || d.scheme == "https" && d.port == 443 {
		return strings.TrimSuffix(d.String(), fmt.Sprintf(":%d", d.port))
	}
	return d.String()
}

// A dialError is why there is no connection to a host.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// A countedConn counts the bytes that pass, and ends when there were too many.
type countedConn struct {
	net.Conn
	usage  *usage
	target target
	over   error // of all later reads: readers of net/http do not heed each error
}

// net/http reads and writes in goroutines of its own.

func (c *countedConn) Read(p []byte) (n int, err error) {
	defer contain.Error("reading from a host", &err)
	if c.over != nil {
		return 0, c.over
	}
	n, err = c.Conn.Read(p)
	if c.over = c.usage.addBytes(c.target.host, c.target.port, 0, int64(n)); c.over != nil {
		return n, c.over
	}
	return n, err
}

func (c *countedConn) Write(p []byte) (n int, err error) {
	defer contain.Error("writing to a host", &err)
	if err := c.usage.addBytes(c.target.host, c.target.port, int64(len(p)), 0); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// forward answers a request for an http:// address.
func (b *Broker) forward(w http.ResponseWriter, r *http.Request) {
	t, err := b.parseTarget(r.URL.Host, 80)
	if err != nil {
		b.refuse(w, target{host: "?"}, &refusal{http.StatusBadRequest, "", err.Error()})
		return
	}
	b.relay(w, r, "http", t, b.plainCredentials(t))
}

// serveHanded answers a request on a connection whose TLS ends here, or to a name without TLS.
func (b *Broker) serveHanded(w http.ResponseWriter, r *http.Request) {
	to, _ := r.Context().Value(handedKey{}).(destination)
	t, usual, credentials, with := to.target, uint16(443), b.credentialsOf(to.host), "with"
	if to.scheme == "http" {
		usual, credentials, with = 80, b.plainCredentials(t), "without"
	}
	named, err := b.parseTarget(r.Host, usual)
	if err == nil && named != t {
		err = fmt.Errorf("the request is for %s, and the connection for %s", named, t)
	}
	if err == nil && r.URL.Scheme != "" && r.URL.Scheme != to.scheme {
		err = fmt.Errorf("the request is for an %s:// address, on a connection %s TLS", r.URL.Scheme, with)
	}
	if err != nil {
		b.refuse(w, t, &refusal{http.StatusForbidden, "", err.Error()})
		return
	}
	b.relay(w, r, to.scheme, t, credentials)
}

// relay checks one request, and answers with the server's response.
func (b *Broker) relay(w http.ResponseWriter, r *http.Request, scheme string, t target, credentials []Credential) {
	if r.URL.Path == "" && r.URL.Opaque == "" {
		r.URL.Path = "/" // what net/http sends for it (RFC 9112, 3.2.1)
	}
	rule, why := b.check(r, scheme, t, credentials)
	if why == nil {
		why = b.full()
	}
	if why != nil {
		b.refuse(w, t, why)
		return
	}
	to := destination{scheme, t}
	r.Header.Del("Max-Forwards") // only proxies after us would obey it (RFC 9110, 7.6.2)
	proxy := &httputil.ReverseProxy{
		Transport: b.transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = scheme, t.String(), to.header()
			p.Out.URL.RawQuery = p.In.URL.RawQuery // Rewrite drops what it cannot parse
			addCredentials(p.Out.Header, credentials)
		},
		ModifyResponse: func(resp *http.Response) error {
			switch {
			case headerLines(resp.Header) > maxHeaderLines:
				return errHeaderLines
			case resp.StatusCode == http.StatusSwitchingProtocols:
				return errSwitch
			case resp.StatusCode == http.StatusProxyAuthRequired && scheme == "http" && b.o.Proxy != nil:
				return &dialError{proxyStatus(resp.StatusCode)}
			}
			return hideSecrets(resp, slices.Concat(credentials, b.proxyCredential(scheme, t)))
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			b.refuse(w, t, b.upstreamRefusal(t, err))
		},
	}
	proxy.ServeHTTP(finalWriter{w}, r.WithContext(b.outgoing(r.Context(), to, rule)))
}

// outgoing returns the context of a forwarded request, which is counted once there is a
// connection for it.
func (b *Broker) outgoing(ctx context.Context, to destination, rule string) context.Context {
	count := sync.OnceFunc(contain.Func("counting a request", func() { b.usage.addRequest(to.host, to.port, rule) })) // it may be sent again
	return httptrace.WithClientTrace(context.WithValue(ctx, destinationKey{}, to), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { count() },
	})
}

// errSwitch refuses a status 101: what follows it could not be checked.
var errSwitch = errors.New("the server wants to change to another protocol, which was not asked for")

// A finalWriter drops informational responses (RFC 9110, 15.2): no client needs them, and
// hideSecrets does not see them.
type finalWriter struct{ http.ResponseWriter }

func (w finalWriter) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w finalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// upstreamRefusal explains to a client why a request to a server failed. It quotes nothing
// from the server, as errors of net/http do, since that may be a credential.
func (b *Broker) upstreamRefusal(t target, err error) *refusal {
	var certificate *tls.CertificateVerificationError
	var dial *dialError
	var spent *bytesError
	switch {
	case errors.As(err, &dial):
		return dialRefusal(dial.error)
	case errors.Is(err, errPartOfText), errors.Is(err, errSwitch), errors.Is(err, errHeaderLines):
		return &refusal{http.StatusForbidden, "", err.Error()}
	case errors.As(err, &certificate):
		err = fmt.Errorf("the certificate of %s is not valid: %w", t.host, certificate.Err)
	case errors.As(err, &spent):
		err = spent
	case errors.Is(err, context.Canceled) && b.life.Err() != nil:
		err = b.o.Owner.ended()
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("the code closed its connection before %s had answered", t.host)
	default:
		err = fmt.Errorf("%s did not answer as a server of HTTP does, or closed the connection", t.host)
	}
	return &refusal{http.StatusBadGateway, "", err.Error()}
}

// check checks one request, and returns the rule that allows it. On a host with rules for
// single requests, it refuses everything that a server might interpret differently than the
// rules.
func (b *Broker) check(r *http.Request, scheme string, t target, credentials []Credential) (rule string, why *refusal) {
	switch method := strings.ToUpper(r.Method); method {
	case http.MethodConnect:
		return "", &refusal{http.StatusForbidden, "", "CONNECT within a connection does not pass"}
	case http.MethodTrace, "TRACK": // RFC 9110, 9.3.8
		return "", &refusal{http.StatusForbidden, "", method + " does not pass: its answer shows what the proxy on the way has added"}
	}
	if r.Header.Get("Upgrade") != "" {
		return "", &refusal{http.StatusForbidden, "", "WebSockets and other upgrades do not pass here"}
	}
	// Package url parses https:v1/x and a:https://HOST/v1/x without a path but with an
	// Opaque, which net/http would send as it is, and which no rule has seen.
	if !strings.HasPrefix(r.URL.Path, "/") && (r.Method != http.MethodOptions || r.URL.Path != "*") {
		return "", &refusal{http.StatusBadRequest, "", "the path of a request must begin with a slash"}
	}
	if b.o.Rules.Inspected(scheme, t.host, t.port) {
		if err := errors.Join(checkPath(r.URL), checkOverride(r.Header)); err != nil {
			return "", &refusal{http.StatusForbidden, "", err.Error()}
		}
	}
	contain.Point("egress: deciding")
	rule, err := b.o.Rules.AllowRequest(r.Method, scheme, t.host, t.port, r.URL.Path)
	if err != nil {
		return rule, &refusal{http.StatusForbidden, rule, err.Error()}
	}
	if err := checkCredentials(r, credentials); err != nil {
		return "", &refusal{http.StatusForbidden, "", err.Error()}
	}
	return rule, nil
}

// maxHeaderLines bounds the lines of a header: 32 KiB in the shortest possible lines take 500
// KiB once they are parsed. For requests, net/http counts them.
const maxHeaderLines = 500

var errHeaderLines = fmt.Errorf("a header of more than %d lines does not pass", maxHeaderLines)

func headerLines(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}
