package login

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"golang.org/x/oauth2"
)

func TestBounds(t *testing.T) {
	const address = "https://login.example"
	some := func(before, after string) []boundtest.Shape {
		return boundtest.Only(boundtest.JSON(before, after), "deep lists", "open objects", "a wide object", "many empty objects", "long keys", "a long string", "a string that does not end", "a huge number")
	}
	boundtest.Run(t, boundtest.Parser{
		Row: "metadata for logins",
		Shapes: append(some(`{"issuer":"`+address+`","resource":"`+address+`","x":`, "}"),
			boundtest.Counted("scopes", `{"issuer":"`+address+`","resource":"`+address+`","authorization_servers":["`+address+`"],"scopes_supported":[`, `"s%d"`, ",", "]}"),
			boundtest.Repeated("a long endpoint", `{"issuer":"`+address+`","token_endpoint":"https://`, "a.", `"}`),
		),
		Parse: func(text []byte) error {
			client := saying(text)
			_, err := discoverServer(context.Background(), client, address)
			if err == nil {
				_, err = discover(context.Background(), client, address, "")
			}
			return err
		},
	}, boundtest.Parser{
		Row: "registration of a client",
		Shapes: append(some(`{"client_id":"c","x":`, "}"),
			boundtest.Counted("addresses", `{"client_id":"c","redirect_uris":[`, `"https://a.example/%d"`, ",", "]}"),
			boundtest.Repeated("contacts", `{"client_id":"c","contacts":["a"`, `,"a"`, "]}"),
		),
		Parse: func(text []byte) error {
			found := &service{server: &oauthex.AuthServerMeta{RegistrationEndpoint: address + "/register"}}
			_, err := (&Store{client: saying(text)}).chooseClient(context.Background(), found, "toolcell", "http://127.0.0.1/callback")
			return err
		},
	}, boundtest.Parser{
		Row:    "token of an authorization server",
		Shapes: append(some(`{"access_token":"t","x":`, "}"), boundtest.Lines("", "")...),
		Parse: func(text []byte) error {
			kept := login{ClientID: "c", ClientSecret: "secret", AuthStyle: oauth2.AuthStyleInHeader, TokenURL: address + "/token"}
			s := &Store{client: saying(text), secrets: redact.New(config.Server{})}
			_, err := s.requestToken(context.Background(), &kept, url.Values{"grant_type": {"client_credentials"}})
			return err
		},
	}, boundtest.Parser{
		Row: "challenge of a server",
		Shapes: []boundtest.Shape{
			boundtest.Counted("parameters", "Bearer ", `k%d="v"`, ",", ""),
			boundtest.Repeated("commas", "Bearer ", ",", "=v"),
			boundtest.Repeated("few commas", "Bearer "+strings.Repeat(",", maxCommas), "v", "=v"),
			boundtest.Repeated("a long value", `Bearer scope="`, "v", `"`),
			boundtest.Repeated("scopes", `Bearer scope="`, "s ", `"`),
			boundtest.Counted("different scopes", `Bearer scope="`, "s%d", " ", `"`),
			boundtest.Repeated("escapes", `Bearer realm="`, `\"`, `"`),
			boundtest.Repeated("a value that does not end", `Bearer realm="`, "v", ""),
			boundtest.Counted("schemes", "", `Bearer%d realm="x"`, ", ", ""),
			boundtest.Repeated("spaces", "Bearer ", " ", "x"),
			boundtest.Repeated("lines", "", "Bearer x\n", ""),
		},
		Parse: func(text []byte) error {
			readChallenge(http.Header{"Www-Authenticate": strings.Split(string(text), "\n")})
			return nil
		},
	}, boundtest.Parser{
		Row: "browser that comes back",
		Shapes: append(boundtest.Lines("GET /callback?code=c HTTP/1.1\r\nHost: localhost\r\n", "\r\n\r\n"),
			boundtest.Counted("parameters", "GET /callback?", "k%d=v", "&", " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
			boundtest.Repeated("escapes", "GET /callback?state=", "%41", " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
			boundtest.Repeated("a refusal", "GET /callback?state=s&error=", "%1b", " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		),
		Parse: comeBack,
	})
}

// saying is a client of a server that says one thing.
func saying(text []byte) *http.Client { return &http.Client{Transport: boundedAnswers{said(text)}} }

type said []byte

func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(bytes.NewReader(s))}, nil
}

// comeBack sends a request to the port that waits for the browser.
func comeBack(text []byte) error {
	b, err := newLoopback("")
	if err != nil {
		return err
	}
	defer b.close()
	b.serve("s")
	c, err := net.Dial("tcp", b.listener.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(text); err != nil {
		return err
	}
	_, err = http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // the connection is closed
	return err
}
