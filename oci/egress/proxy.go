package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A target is a host, in canonical form, and a port.
type target struct {
	host string
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// A refusal explains why a request is refused.
type refusal struct {
	status int
	rule   string // that says so, "" if there is none
	reason string
}

// serveProxy answers what clients ask of a proxy: to connect (RFC 9110, 9.3.6), or to
// forward a request in absolute form (RFC 9112, 3.2.2).
func (b *Broker) serveProxy(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		b.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		b.forward(w, r)
	default:
		b.refuse(w, target{host: "?"}, &refusal{http.StatusBadRequest, "", "this is a proxy: it takes CONNECT, and requests for http:// addresses"})
	}
}

// parseTarget reads the host and port of a request.
func (b *Broker) parseTarget(hostPort string, defaultPort uint16) (t target, err error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = strings.Trim(hostPort, "[]"), ""
	}
	t.port = defaultPort
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is not a port", port)
		}
		t.port = uint16(n)
	}
	if t.port == 0 {
		return t, errors.New("a port is missing")
	}
	t.host, err = b.o.Rules.CanonicalHost(host)
	return t, err
}

// connect lets a client open a TLS connection: to the host itself, or to us if requests must
// be checked.
func (b *Broker) connect(w http.ResponseWriter, r *http.Request) {
	t, err := b.parseTarget(r.RequestURI, 0)
	if err != nil {
		b.refuse(w, target{host: "?"}, &refusal{http.StatusBadRequest, "", err.Error()})
		return
	}
	server, why := b.open(r.Context(), destination{"https", t})
	if why != nil {
		b.refuse(w, t, why)
		return
	}
	if server != nil {
		defer b.keep(server)()
		defer server.Close()
	}
	client, buffered, err := accept(w)
	if err != nil {
		return
	}
	if server == nil {
		b.inspect(client, buffered, t)
		return
	}
	defer client.Close()
	b.tunnel(client, buffered, server, t)
}

// open connects to a host, if the rules allow it. The connection is nil if requests must be
// checked one by one instead. A refusal says why there is neither.
func (b *Broker) open(ctx context.Context, to destination) (server net.Conn, why *refusal) {
	contain.Point("egress: deciding")
	rule, err := b.o.Rules.AllowHost(to.scheme, to.host, to.port)
	if err != nil {
		return nil, &refusal{http.StatusForbidden, rule, err.Error()}
	}
	if to.scheme == "https" && b.o.Rules.Inspected("https", to.host, to.port) {
		return nil, nil
	}
	if why := b.full(); why != nil {
		return nil, why
	}
	if server, err = b.dial(ctx, to); err != nil {
		return nil, dialRefusal(err)
	}
	b.usage.addRequest(to.host, to.port, rule)
	return server, nil
}

// full refuses what would send or receive more bytes, if a server has to wait for that.
func (b *Broker) full() *refusal {
	if err := b.usage.full(); err != nil {
		return &refusal{http.StatusTooManyRequests, "", err.Error()}
	}
	return nil
}

// dialRefusal explains to a client why a host cannot be reached.
func dialRefusal(err error) *refusal {
	if _, ok := errors.AsType[*addressError](err); ok {
		return &refusal{http.StatusForbidden, "", err.Error()}
	}
	return &refusal{http.StatusBadGateway, "", err.Error()}
}

// accept answers a CONNECT with success, and takes over the connection. buffered has
// what the client has sent already.
func accept(w http.ResponseWriter) (client net.Conn, buffered *bufio.Reader, err error) {
	client, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = client.SetDeadline(time.Time{})
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, rw.Reader, nil
}

// refuse answers a refused request. The reason is in the status line, which is all that
// Python's clients show of a refused CONNECT, and in the body.
func (b *Broker) refuse(w http.ResponseWriter, t target, why *refusal) {
	b.record(t, why)
	reason := asciiLine(why.reason)
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	end(c, fmt.Sprintf("HTTP/1.1 %d toolcell: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\ntoolcell: %s\n",
		why.status, reason, len(reason)+len("toolcell: \n"), reason))
}

// record records a refusal.
func (b *Broker) record(t target, why *refusal) {
	if why.status == http.StatusBadGateway {
		b.usage.addFailure(t.host, t.port, why.reason)
	} else {
		b.usage.addRefusal(t.host, t.port, why.rule, why.reason)
	}
}

// end sends a client its last words, and closes the connection. Closing with unread data would
// reset it, and the client would lose them (RFC 9112, 9.6).
func end(c net.Conn, words string) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, words)
	half := c
	if in, ok := c.(*handedConn); ok {
		half = in.client
	}
	_ = half.(*slotConn).CloseWrite()
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c, 256<<10)
}

// asciiLine replaces characters that are not allowed in a status line.
func asciiLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
	return s[:min(len(s), 400)]
}

// A handedConn is one whose requests are checked one by one.
type handedConn struct {
	net.Conn
	client net.Conn // below TLS
	to     destination
}

// handedKey is the key of a handed connection's destination in a request's context.
type handedKey struct{}

// inspect answers a client in the host's place.
func (b *Broker) inspect(client net.Conn, buffered *bufio.Reader, t target) {
	config := &tls.Config{
		NextProtos: []string{"http/1.1"}, GetCertificate: b.authority.leafFor,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (_ *tls.Config, err error) {
			defer contain.Error("checking the name in a TLS handshake", &err)
			if err = checkServerName(hello.ServerName, t.host); err != nil {
				b.usage.addRefusal(t.host, t.port, "", err.Error())
			}
			return nil, err
		},
	}
	b.hand(&handedConn{tls.Server(&prefixedConn{client, io.MultiReader(unread(buffered), client)}, config), client, destination{"https", t}})
}

// hand gives a connection to the server that checks its requests.
func (b *Broker) hand(c *handedConn) {
	select {
	case b.handed <- c:
	case <-b.life.Done():
		c.client.Close()
	}
}

// unread returns the data that a reader has buffered.
func unread(r *bufio.Reader) io.Reader { return io.LimitReader(r, int64(r.Buffered())) }
