package login

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

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
}

func TestLoginEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user left")
	if _, err := fetched(ctx, t, func(string) { cancel(gone) }); !errors.Is(err, gone) {
		t.Errorf("err = %v", err)
	}
}
