package egress

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// serveNamed serves the connections to one address inside: those to a host by its name, and
// those to the name server.
func (b *Broker) serveNamed(l net.Listener) {
	at, err := netip.ParseAddrPort(l.Addr().String())
	name, ok := b.o.Names.names[at]
	if err != nil || !ok && at != nameServer {
		l.Close() // pid 1 has sent what nothing was said about
		return
	}
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			b.goServeNamed(c, name, at == nameServer)
		case errors.Is(err, net.ErrClosed) || !b.rest():
			return
		}
	}
}

// goServeNamed serves a connection in the background, once there is room for it.
func (b *Broker) goServeNamed(c net.Conn, name Name, asks bool) {
	select {
	case b.free <- struct{}{}:
	case <-b.life.Done():
		c.Close()
		return
	}
	c, err := b.admit(c)
	if err != nil {
		return // a panic: other connections continue
	}
	leave, ok := b.enter()
	if !ok {
		c.Close()
		return
	}
	go func() {
		defer contain.Recover("serving a connection to a name", func(error) { c.Close() })
		defer leave()
		if asks {
			defer c.Close()
			b.serveNameStream(c)
			return
		}
		b.connectNamed(c, name)
	}()
}

// connectNamed serves a connection to a host's name as the proxy does one that was asked for:
// with TLS as after a CONNECT, without as a request for an http:// address.
func (b *Broker) connectNamed(client net.Conn, name Name) {
	t := target{name.Host, name.Port}
	if name.Any {
		b.pass(client, bufio.NewReader(client), destination{"tcp", t})
		return
	}
	buffered := bufio.NewReader(client)
	_ = client.SetReadDeadline(time.Now().Add(headerTimeout))
	first, err := buffered.Peek(1)
	_ = client.SetReadDeadline(time.Time{})
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), err == nil && first[0] != tlsHandshake && (first[0] < 'A' || first[0] > 'z'):
		defer client.Close()
		b.record(t, &refusal{http.StatusForbidden, "", fmt.Sprintf(
			"the connection to %s began with neither TLS nor HTTP; for other protocols add \"tcp://%s\" to %s", t, t, b.o.Owner.listsHosts())})
	case err != nil: // the client has given up, as it may
		client.Close()
	case first[0] == tlsHandshake:
		b.pass(client, buffered, destination{"https", t})
	default:
		b.hand(&handedConn{&prefixedConn{client, buffered}, client, destination{"http", t}})
	}
}

// tlsHandshake is the first byte of a ClientHello's record. The others are alerts, which clients
// show as their error (RFC 8446, 5.1 and 6).
const (
	tlsHandshake  = 22
	accessDenied  = "\x15\x03\x01\x00\x02\x02\x31"
	internalError = "\x15\x03\x01\x00\x02\x02\x50"
)

// pass connects a client to its host.
func (b *Broker) pass(client net.Conn, buffered *bufio.Reader, to destination) {
	server, why := b.open(b.life, to)
	switch {
	case why != nil:
		b.record(to.target, why)
		switch {
		case to.scheme != "https":
			client.Close()
		case why.status == http.StatusForbidden:
			end(client, accessDenied)
		default:
			end(client, internalError)
		}
		return
	case server == nil:
		b.inspect(client, buffered, to.target)
		return
	}
	defer client.Close()
	defer b.keep(server)()
	defer server.Close()
	if to.scheme == "https" {
		b.tunnel(client, buffered, server, to.target)
	} else {
		b.exchange(client, nil, server, to.target)
	}
}
