package login

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// logInAt logs in to the server at an address, which wants a login and says nothing more.
func logInAt(t *testing.T, address string, show func(string)) error {
	t.Helper()
	entry := config.Server{Name: "fake", URL: address}
	answer := &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}
	return NewStore(entry, t.TempDir(), redact.New(entry)).LogIn(t.Context(), answer, "", show)
}

// TestServerThatPublishesNothingIsItsOwnAuthority, with the addresses of the specification of 2025-03-26.
func TestServerThatPublishesNothingIsItsOwnAuthority(t *testing.T) {
	a := newAuthority(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			http.NotFound(w, r)
			return
		}
		a.Mux.ServeHTTP(w, r)
	}))
	defer front.Close()
	if err := logInAt(t, front.URL+"/mcp", browser(t)); err != nil {
		t.Fatal(err)
	}
	if form := a.requests()[0]; form.Get("resource") != front.URL+"/mcp" || form.Get("client_id") != "registered" {
		t.Errorf("posted %v", form)
	}
}

// TestServerThatIsDownIsNotGuessed: its documents may exist, and a guess would hide what is wrong.
func TestServerThatIsDownIsNotGuessed(t *testing.T) {
	for _, down := range []string{
		"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource",
		"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == down {
				http.Error(w, "down", http.StatusServiceUnavailable)
				return
			}
			http.NotFound(w, r)
		}))
		defer server.Close()
		err := logInAt(t, server.URL+"/mcp", func(string) { t.Errorf("%s: a browser is asked for", down) })
		mcptest.WantError(t, err, "reading "+server.URL+down+": the server answered 503")
	}
}

// answering is a transport that answers requests itself.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// TestServerAtNoSafeAddressIsAskedNothing: its documents say where secrets go.
func TestServerAtNoSafeAddressIsAskedNothing(t *testing.T) {
	client := &http.Client{Transport: answering(func(r *http.Request) *http.Response {
		t.Errorf("asked at %s", r.URL)
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}
	})}
	for address, want := range map[string]string{
		"http://login.example/mcp": "is not an https address", "https://[::1/mcp": "missing ']'",
	} {
		_, err := discover(t.Context(), client, address, "")
		mcptest.WantError(t, err, want)
	}
}

// TestServersAreAskedForJSON, for which some have another page, and no connection is kept for hours.
func TestServersAreAskedForJSON(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if got := r.Header.Get("Accept"); got != "application/json" {
			t.Errorf("%s: asked for %q", r.URL, got)
		}
		if !r.Close {
			t.Errorf("%s: the connection is kept", r.URL)
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	if _, err := discover(t.Context(), newClient(server.URL), server.URL+"/mcp", ""); err != nil || asked.Load() == 0 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// TestAnswersAreClosed, whatever they are: an open one keeps its connection.
func TestAnswersAreClosed(t *testing.T) {
	for name, status := range map[string]int{
		"none": http.StatusNotFound, "an error": http.StatusBadGateway, "a document": http.StatusOK,
	} {
		var open, asked int
		client := &http.Client{Transport: answering(func(r *http.Request) *http.Response {
			open++
			asked++
			body := strings.NewReader(`{"resource":"https://a.example/other"}`)
			return &http.Response{StatusCode: status, Request: r, Body: closing{body, func() { open-- }}}
		})}
		_, _ = discover(t.Context(), client, "https://a.example/mcp", "")
		if asked == 0 || open != 0 {
			t.Errorf("%s: %d of %d answers are open", name, open, asked)
		}
	}
}

type closing struct {
	io.Reader
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return nil
}

// TestAddressMayHaveAZone: a server on the local link (RFC 6874).
func TestAddressMayHaveAZone(t *testing.T) {
	const origin = "https://[fe80::1%25eth0]:8443"
	client := &http.Client{Transport: answering(func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}
	})}
	found, err := discover(t.Context(), client, origin+"/mcp", "")
	if err != nil || found.server.TokenEndpoint != origin+"/token" {
		t.Errorf("%+v, %v", found, err)
	}
}
