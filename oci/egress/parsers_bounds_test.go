package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "request of code",
		Shapes: append(boundtest.Lines("GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n", "\r\n\r\n"),
			boundtest.Repeated("a long method", "", "M", " / HTTP/1.1\r\n\r\n"),
			boundtest.Repeated("a long path", "GET http://plain.test/", "a/../", " HTTP/1.1\r\n\r\n"),
			boundtest.Repeated("escapes", "GET http://plain.test/", "%252e", " HTTP/1.1\r\n\r\n"),
			boundtest.Repeated("a long host", "CONNECT ", "a.", ":443 HTTP/1.1\r\n\r\n"),
		),
		Parse: func(text []byte) error {
			proxy, _ := startBroker(t, Options{Rules: testRules{inspected: map[string][]string{"plain.test": {"GET /*"}}}})
			c, err := net.Dial("tcp", proxy)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Write(text); err != nil {
				return err
			}
			_, err = http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // the connection is closed
			return err
		},
	}, boundtest.Parser{
		Row: "answer of a host",
		Shapes: append(boundtest.Lines("HTTP/1.1 200 OK\r\n", "\r\n\r\n"),
			boundtest.Repeated("a long status", "HTTP/1.1 200 ", "x", "\r\n\r\n"),
			boundtest.Repeated("answers ahead of the answer", "", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", ""),
		),
		Parse: func(text []byte) error {
			_, b := startBroker(t, Options{Rules: testRules{}})
			transport := b.newTransport()
			transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return &saidConn{recordConn{w: io.Discard}, bytes.NewReader(text)}, nil
			}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequest(http.MethodGet, "http://plain.test/", nil)
			if err != nil {
				return err
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			headerLines(resp.Header)
			return resp.Body.Close()
		},
	}, boundtest.Parser{
		Row: "question about a name",
		Shapes: []boundtest.Shape{
			boundtest.Repeated("questions", "\x00\x07\x01\x00\xff\xff\x00\x00\x00\x00\x00\x00", "\x01a\x00\x00\x01\x00\x01", ""),
			boundtest.Repeated("pointers", "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\xc0\x0e", ""),
			boundtest.Repeated("labels", "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x01a", "\x00\x00\x01\x00\x01"),
			boundtest.Repeated("records", "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\xff\xff\x01a\x00\x00\x01\x00\x01", "\x00\x00\x29\x04\x00\x00\x00\x00\x00\x00\x00", ""),
		},
		Parse: func(text []byte) error {
			NewNameTable([]Name{{"a", 443, false}}).answer(text)
			return nil
		},
	}, boundtest.Parser{
		Row: "TLS handshake of code",
		Shapes: []boundtest.Shape{
			boundtest.Repeated("empty records", "", "\x16\x03\x01\x00\x00", ""),
			boundtest.Repeated("records of a byte", "\x16\x03\x01\x00\x04\x01\x00\xff\xff", "\x16\x03\x01\x00\x01\x00", ""),
			boundtest.Repeated("alerts", "", "\x15\x03\x01\x00\x02\x01\x00", ""),
			boundtest.Repeated("changes of the cipher", "", "\x14\x03\x01\x00\x01\x01", ""),
			boundtest.Repeated("a large record", "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", "\x00", ""),
			boundtest.Repeated("extensions", "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"+string(make([]byte, 32))+"\x00\x00\x02\x13\x01\x01\x00\x3f\xcd", "\x12\x34\x00\x00", ""),
			boundtest.Repeated("text", "", "x", ""),
		},
		Parse: func(text []byte) error {
			_, _, err := readHello(&recordConn{}, bytes.NewReader(text))
			return err
		},
	}, boundtest.Parser{
		Row:    "answer of a proxy",
		Shapes: boundtest.Lines("HTTP/1.1 200 OK\r\n", "\r\n\r\n"),
		Parse: func(text []byte) error {
			return readProxyAnswer(bytes.NewReader(text), &http.Request{Method: http.MethodConnect})
		},
	})
}

// A saidConn has something to read.
type saidConn struct {
	recordConn
	said io.Reader
}

func (c *saidConn) Read(p []byte) (int, error) { return c.said.Read(p) }
