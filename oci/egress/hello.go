package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

var (
	errNoTLS   = errors.New("only TLS passes through CONNECT")
	errHello   = errors.New("read")
	errIsHello = errors.New("the TLS handshake has not begun in time")
)

// readHello reads the ClientHello with which a connection must begin, and returns its server
// name and the bytes that were read. crypto/tls parses it, in a handshake that is then
// abandoned. The error is io.EOF if nothing was sent.
func readHello(c net.Conn, r io.Reader) (serverName string, read []byte, err error) {
	_ = c.SetReadDeadline(time.Now().Add(headerTimeout))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	var seen bytes.Buffer
	server := tls.Server(&helloConn{prefixedConn{c, io.TeeReader(io.LimitReader(r, maxHeader), &seen)}}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			serverName = h.ServerName
			return nil, errHello
		},
	})
	err = server.Handshake()
	var timeout net.Error
	switch {
	case errors.Is(err, errHello):
		return serverName, seen.Bytes(), nil
	case errors.Is(err, io.EOF) && seen.Len() == 0:
		return "", nil, io.EOF
	case errors.As(err, &timeout) && timeout.Timeout():
		return "", nil, errIsHello
	}
	return "", nil, errNoTLS
}

// A helloConn only reads.
type helloConn struct{ prefixedConn }

func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }

// A prefixedConn reads again what was read before.
type prefixedConn struct {
	net.Conn
	r io.Reader
}

func (c *prefixedConn) Read(p []byte) (int, error) { return c.r.Read(p) }
