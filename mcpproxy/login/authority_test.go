package login

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// authority is an authorization server with the entry of its MCP server.
type authority struct {
	*mcptest.Authority
	oauth *config.OAuth // of the entry

	status  int    // of the answer to a renewal, if it is to fail
	failure string // its body
	noBasic bool   // it takes no secret in a header
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{Authority: mcptest.NewAuthority(t)}
	a.Refuse = a.refuse
	return a
}

func (a *authority) refuse(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case a.noBasic && r.Header.Get("Authorization") != "":
		http.Error(w, "<html>who?</html>", http.StatusUnauthorized)
	case a.status != 0 && r.Form.Get("grant_type") == "refresh_token":
		if strings.HasPrefix(a.failure, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.failure)
	default:
		return false
	}
	return true
}

func (a *authority) entry() config.Server {
	return config.Server{Name: "fake", URL: a.URL + "/mcp", Source: "test.json", OAuth: a.oauth}
}

// open opens the login of the authority's server, as a process does.
func (a *authority) open(dir string) *Store {
	return NewStore(a.entry(), dir, redact.New(a.entry()))
}

// logIn logs in after a server answered a request without a token so; the status is
// that of the answer.
func (a *authority) logIn(ctx context.Context, s *Store, status int, show func(string)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+"/mcp", nil)
	if err != nil {
		return err
	}
	return s.LogIn(ctx, &http.Response{StatusCode: status, Request: req, Body: http.NoBody, Header: http.Header{
		"Www-Authenticate": {`Bearer resource_metadata="` + a.URL + `/.well-known/oauth-protected-resource/mcp"`},
	}}, "", show)
}

// loggedIn returns a Store with a login, in a new folder.
func (a *authority) loggedIn(t *testing.T) (s *Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s = a.open(dir)
	if err := a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t)); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// browser returns the user's browser, which follows redirects.
func browser(t *testing.T) func(string) {
	var browsing sync.WaitGroup
	t.Cleanup(browsing.Wait)
	return func(address string) { browsing.Go(func() { mcptest.Browse(t, address) }) }
}
