package remote

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// gone is the address of a server that is no more. The port of one that a test has just closed
// may be another's by now; none is given this one.
const gone = "http://127.0.0.1:1"

// linkTo returns a link to a server that these headers authorize.
func linkTo(t *testing.T, address string, headers map[string]string) *Link {
	t.Helper()
	r, err := New(config.Server{Name: "fake", URL: address, Headers: headers, Source: "test.json"}, config.HTTP, message.NewNotifications(func() {}), nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(); r.WaitClosed() })
	return r
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	for _, address := range []string{"", "mcp.example", "file:///mcp", "http://", "http://[::1"} {
		_, err := New(config.Server{URL: address, Source: "test.json"}, config.HTTP, nil, nil, 0)
		mcptest.WantError(t, err, `"url" is not an http or https address`, "test.json")
		var failed *Error
		if !errors.As(err, &failed) || !failed.IsCurable() || failed.SuggestsSSE() {
			t.Errorf("%q: %+v", address, failed)
		}
	}
}

func TestSecretsStayWithTheServerOfTheEntry(t *testing.T) {
	for _, tt := range []struct {
		entry, to string
		want      bool
	}{
		{"https://mcp.example/a", "https://mcp.example/b?c=d", true},
		{"https://mcp.example", "https://MCP.example:443/", true},
		{"http://mcp.example", "https://mcp.example/", true},
		{"https://mcp.example", "http://mcp.example/", false},
		{"http://mcp.example:8080", "https://mcp.example/", false},
		{"https://mcp.example", "https://mcp.example:8443/", false},
		{"https://mcp.example", "https://evil.mcp.example/", false},
		{"https://mcp.example", "https://mcp.example.evil/", false},
		{"https://mcp.example", "https://mcp.example@evil/", false},
	} {
		entry, err := url.Parse(tt.entry)
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := sameServer(entry, to); got != tt.want {
			t.Errorf("%s → %s: %v", tt.entry, tt.to, got)
		}
	}
}

// TestRedirectsToOthersGetNothing: neither headers nor the message.
func TestRedirectsToOthersGetNothing(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another host got %v", r.Header) }))
	defer other.Close()
	for status, want := range map[int]string{307: "redirects to another host", 302: "redirects to another host"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") != "s3cret" {
				t.Errorf("the server got %v", r.Header)
			}
			http.Redirect(w, r, other.URL, status)
		}))
		r := linkTo(t, server.URL, map[string]string{"x-api-key": "s3cret"})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"id":1,"method":"ping"}`))
		resp, err := r.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		mcptest.WantError(t, err, want, "test.json")
		server.Close()
	}
}

func TestRedirectsOfAServerAreBounded(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if left := len(r.URL.Path) - len("/"); left > 0 {
			http.Redirect(w, r, r.URL.Path[:left], http.StatusTemporaryRedirect)
			return
		}
		mcptest.Respond(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{}})
	}))
	defer server.Close()
	r := linkTo(t, server.URL, nil)
	for redirects, want := range map[int]string{maxRedirects: "", maxRedirects + 1: "redirects in a circle"} {
		asked = 0
		address := server.URL + "/" + strings.Repeat("r", redirects)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"id":1,"method":"ping"}`))
		resp, err := r.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if want != "" {
			mcptest.WantError(t, err, want)
		} else if err != nil {
			t.Errorf("%d redirects: %v", redirects, err)
		}
		if asked != maxRedirects+1 {
			t.Errorf("%d redirects: the server was asked %d times", redirects, asked)
		}
	}
}

func TestHeadersOfTheProtocolAreNotTheEntrys(t *testing.T) {
	r := linkTo(t, "https://user:password@mcp.example", map[string]string{"mcp-session-id": "stolen", "Content-Type": "text/plain", " host ": "inner.example", "X-A": "b"})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example", nil)
	req.Header.Set("Content-Type", "application/json")
	r.setHeaders(req)
	if user, password, _ := req.BasicAuth(); user != "user" || password != "password" {
		t.Errorf("authorizes with %q, %q", user, password)
	}
	req.Header.Del("Authorization")
	want := http.Header{"Content-Type": {"application/json"}, "X-A": {"b"}, "User-Agent": {"toolcell"}}
	if len(req.Header) != len(want) || req.Host != "inner.example" {
		t.Errorf("host %q, headers %v", req.Host, req.Header)
	}
	for k := range want {
		if req.Header.Get(k) != want.Get(k) {
			t.Errorf("%s: %q", k, req.Header.Get(k))
		}
	}
}

func TestArgumentsBecomeHeaders(t *testing.T) {
	schema := json.RawMessage(`{"properties":{
		"region":{"x-mcp-header":"Region"}, "count":{"x-mcp-header":"Count"}, "deep":{"properties":{"id":{"x-mcp-header":"Id"}}},
		"half":{"x-mcp-header":"Half"}, "bad":{"x-mcp-header":"Bad Name"}, "none":{"x-mcp-header":"None"}, "odd":{"x-mcp-header":"Odd"}}}`)
	args := json.RawMessage(`{"region":"eu","count":3,"deep":{"id":true},"half":0.5,"bad":"x","none":null,"odd":"é\r\nHost: evil"}`)
	got := http.Header{}
	argumentHeaders(t.Context(), got, schema, args)
	for name, want := range map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-Count": "3", "Mcp-Param-Id": "true", "Mcp-Param-Odd": "=?base64?w6kNCkhvc3Q6IGV2aWw=?="} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
	if len(got) != 4 {
		t.Errorf("headers %v", got)
	}
}

func TestNetworkErrorsSayWhatToDo(t *testing.T) {
	e := linkTo(t, "https://mcp.example/path-s3cret?key=s3cret", nil)
	at := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://mcp.example/path-s3cret?key=s3cret", Err: err}
	}
	for name, tt := range map[string]struct {
		err  error
		want []string
		lost bool
	}{
		"no server":       {at(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), []string{"https://mcp.example", "connection refused", "test.json"}, false},
		"no host":         {at(&net.DNSError{IsNotFound: true}), []string{"no host of this name"}, false},
		"unknown signer":  {at(x509.UnknownAuthorityError{}), []string{"SSL_CERT_FILE"}, false},
		"not TLS":         {at(errors.New("http: server gave HTTP response to HTTPS client")), []string{"write http://"}, false},
		"broken off":      {at(io.ErrUnexpectedEOF), []string{"broke off"}, true},
		"anything at all": {at(errors.New("x")), []string{"broke off: x"}, true},
	} {
		err := e.words(tt.err)
		mcptest.WantError(t, err, tt.want...)
		var failed *Error
		if strings.Contains(err.Error(), "s3cret") || !errors.As(err, &failed) || failed.Lost != tt.lost {
			t.Errorf("%s: %v, %+v", name, err, failed)
		}
	}
	if err := e.words(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
}

// eventsOf reads a stream of events as the SDK gets it.
func eventsOf(t *testing.T, limit int, stream string) (string, error) {
	t.Helper()
	r := linkTo(t, "https://mcp.example", nil)
	r.limit = limit
	out, err := io.ReadAll(newEvents(t.Context(), r, io.NopCloser(strings.NewReader(stream)), func() {}, nil))
	return string(out), err
}

func TestEventsAreMadeRegular(t *testing.T) {
	got, err := eventsOf(t, 1000, ": comment\nretry: 5\nid: a\x1bb\nunknown: x\n\n"+
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\nid: 2\n\n"+
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: not JSON\n\nevent: other\ndata: {}\n\ndata: {\"half\"")
	want := "id: ab\nretry: 5\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	if got != want || !errors.Is(err, io.EOF) && err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	_, err = eventsOf(t, 1000, "data: "+strings.Repeat("x", 400)+"\ndata: "+strings.Repeat("y", 800)+"\n\n")
	var long *message.TooLongError
	if !errors.As(err, &long) || long.Limit != 1000 {
		t.Errorf("an endless event: %v", err)
	}
}
