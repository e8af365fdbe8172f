package login

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

func TestLoginAsksForScopesAndKeepsSecretsOutOfTexts(t *testing.T) {
	a := newAuthority(t)
	a.oauth = &config.OAuth{ClientID: "known", ClientSecret: "known-s3cret", Scopes: []string{"read", "write"}}
	s := a.open(t.TempDir())
	if err := a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t)); err != nil {
		t.Fatal(err)
	}
	a.Lock()
	defer a.Unlock()
	if scope := a.Queries[0].Get("scope"); scope != "read write" || len(a.Forms) != 1 || a.Forms[0].Get("code_verifier") == "" || a.Forms[0].Get("resource") != s.url {
		t.Errorf("asked for %q with %v", scope, a.Forms)
	}
	if got := s.secrets.Text("access-token-1 refresh-token-1 known-s3cret"); got != "[token] [token] [client secret]" {
		t.Errorf("secrets in a text: %q", got)
	}
}

func TestServerThatAsksForNoLoginIsNamed(t *testing.T) {
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	entry := config.Server{Name: "open", URL: nothing.URL + "/mcp"}
	err := NewStore(entry, t.TempDir(), redact.New(entry)).LogIn(t.Context(), &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, "",
		func(string) { t.Error("a browser is asked for") })
	mcptest.WantError(t, err, "does not ask for a login")
}

// fetched waits for the browser at a loopback. act is what comes to it.
func fetched(ctx context.Context, t *testing.T, act func(callback string)) (code string, err error) {
	t.Helper()
	b, err := newLoopback("")
	if err != nil {
		t.Fatal(err)
	}
	var browsing sync.WaitGroup
	defer browsing.Wait()
	defer b.close()
	b.serve("the state")
	browsing.Go(func() { act(b.url) })
	got, err := b.wait(ctx)
	if err != nil {
		return "", err
	}
	return got.code, nil
}

// TestStrangersEndNoLogin: any program of this host can reach the port.
func TestStrangersEndNoLogin(t *testing.T) {
	code, err := fetched(t.Context(), t, func(callback string) {
		for _, strange := range []string{
			callback, callback + "?code=stolen", callback + "?code=stolen&state=", callback + "?code=stolen&state=another",
			callback + "?error=access_denied", strings.Replace(callback, "/callback", "/", 1), callback + "/more?code=c&state=the+state",
		} {
			if status, _ := mcptest.Browse(t, strange); status != http.StatusBadRequest && status != http.StatusNotFound {
				t.Errorf("%s: status %d", strange, status)
			}
		}
		resp, err := http.PostForm(callback, url.Values{"code": {"stolen"}, "state": {"the state"}})
		if err != nil {
			t.Error(err)
		} else if resp.Body.Close(); resp.StatusCode != http.StatusNotFound {
			t.Errorf("a POST: status %d", resp.StatusCode)
		}
		if status, page := mcptest.Browse(t, callback+"?code=good&state=the+state"); status != http.StatusOK || !strings.Contains(page, "close this page") {
			t.Errorf("status %d: %s", status, page)
		}
	})
	if err != nil || code != "good" {
		t.Errorf("got %q, %v", code, err)
	}
}

func TestRefusedLoginSaysWhy(t *testing.T) {
	_, err := fetched(t.Context(), t, func(callback string) {
		if _, page := mcptest.Browse(t, callback+"?error=access_denied&error_description=not%1B%5B31m+you&state=the+state"); !strings.Contains(page, "refused") {
			t.Errorf("the page says %s", page)
		}
	})
	mcptest.WantError(t, err, "refused: access_denied not[31m you")
	_, err = fetched(t.Context(), t, func(callback string) { mcptest.Browse(t, callback+"?state=the+state") })
	mcptest.WantError(t, err, "the authorization server refused")
	_, err = fetched(t.Context(), t, func(callback string) { mcptest.Browse(t, callback+"?error=access_denied&code=c&state=the+state") })
	mcptest.WantError(t, err, "refused: access_denied")
}

func TestLoginEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user left")
	if _, err := fetched(ctx, t, func(string) { cancel(gone) }); !errors.Is(err, gone) {
		t.Errorf("err = %v", err)
	}
}

// TestRedirectThatIsNoAddressIsReported before a browser is asked for.
func TestRedirectThatIsNoAddressIsReported(t *testing.T) {
	a := newAuthority(t)
	a.oauth = &config.OAuth{ClientID: "known", RedirectURL: "http://[::1/callback"}
	err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, func(string) { t.Error("a browser is asked for") })
	mcptest.WantError(t, err, "http://[::1/callback", "missing ']'")
}

// TestPagesLeadNoOtherSiteToTheCode, which is in their address.
func TestPagesLeadNoOtherSiteToTheCode(t *testing.T) {
	code, err := fetched(t.Context(), t, func(callback string) {
		for _, query := range []string{"?code=c&state=another", "?code=c&state=the+state"} {
			resp, err := http.Get(callback + query)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if got := resp.Header.Get("Referrer-Policy"); got != "no-referrer" {
				t.Errorf("%s: Referrer-Policy %q", query, got)
			}
		}
	})
	if err != nil || code != "c" {
		t.Errorf("got %q, %v", code, err)
	}
}

// TestClosedLoopbackLeavesNoPortOpen, even if it is closed before it has begun to serve.
func TestClosedLoopbackLeavesNoPortOpen(t *testing.T) {
	for range 20 {
		b, err := newLoopback("")
		if err != nil {
			t.Fatal(err)
		}
		b.serve("s")
		b.close()
		if err := b.listener.Close(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("the port was still open: %v", err)
		}
	}
}

// TestFaultOfTheLoopbackEndsTheLogin: nothing would wait for the browser any more.
func TestFaultOfTheLoopbackEndsTheLogin(t *testing.T) {
	b, err := newLoopback("")
	if err != nil {
		t.Fatal(err)
	}
	contain.Inject(t, func(at string) bool { return at == "waiting for the browser" })
	b.serve("s")
	b.close()
	select {
	case got := <-b.came:
		mcptest.WantError(t, got.err, "an internal error in toolcell while waiting for the browser")
	default:
		t.Error("the login waits on")
	}
}
