package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// authority is an authorization server. It takes each refresh token once, and
// withdraws everything when one comes again.
type authority struct {
	url string

	mu        sync.Mutex
	life      time.Duration // of an access token
	status    int           // of the answer to a renewal, if it is to fail
	failure   string        // its body
	refresh   string        // the token that may be used
	number    int           // of the last token
	renewals  int
	withdrawn bool
	forms     []url.Values // that came for tokens
	basic     []string     // with which Authorization
	queries   []url.Values // with which a browser came
	scopes    string       // that were asked for

	oauth    *config.OAuth        // of the entry
	metadata func(map[string]any) // changes what is published: by the authorization server
	resource func(map[string]any) // and by the server
	noBasic  bool                 // it takes no secret in a header
	mux      *http.ServeMux
	front    string // the address of a server before it
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{life: time.Hour}
	mux := http.NewServeMux()
	a.mux = mux
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		published := map[string]any{"resource": a.url + "/mcp", "authorization_servers": []string{a.url}, "scopes_supported": []string{"tools"}}
		if a.resource != nil {
			a.resource(published)
		}
		respond(w, 200, published)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		published := map[string]any{
			"issuer": a.url, "authorization_endpoint": a.url + "/authorize", "token_endpoint": a.url + "/token", "registration_endpoint": a.url + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		}
		if a.metadata != nil {
			a.metadata(published)
		}
		respond(w, 200, published)
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, 201, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		a.mu.Lock()
		a.scopes = q.Get("scope")
		a.queries = append(a.queries, q)
		a.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"the-code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", a.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forms = append(a.forms, r.PostForm)
	a.basic = append(a.basic, r.Header.Get("Authorization"))
	if a.noBasic && r.Header.Get("Authorization") != "" {
		http.Error(w, "<html>who?</html>", http.StatusUnauthorized)
		return
	}
	if r.Form.Get("grant_type") == "refresh_token" {
		if a.status != 0 {
			if strings.HasPrefix(a.failure, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(a.status)
			_, _ = io.WriteString(w, a.failure)
			return
		}
		if a.withdrawn = a.withdrawn || r.Form.Get("refresh_token") != a.refresh; a.withdrawn {
			respond(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		a.renewals++
	}
	a.number++
	a.refresh = fmt.Sprintf("refresh-token-%d", a.number)
	respond(w, 200, map[string]any{
		"access_token": fmt.Sprintf("access-token-%d", a.number), "refresh_token": a.refresh, "token_type": "Bearer", "expires_in": int(a.life.Seconds()),
	})
}

// count returns how often a token was renewed.
func (a *authority) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renewals
}

func (a *authority) entry() config.Server {
	return config.Server{Name: "fake", URL: a.url + "/mcp", Source: "test.json", OAuth: a.oauth}
}

// open opens the login of the authority's server, as a process does.
func (a *authority) open(dir string) *Store {
	return NewStore(a.entry(), dir, redact.New(a.entry()))
}

// logIn logs in after a server answered a request without a token so; the status is
// that of the answer.
func (a *authority) logIn(ctx context.Context, s *Store, status int, o Options) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/mcp", nil)
	if err != nil {
		return err
	}
	return s.LogIn(ctx, &http.Response{StatusCode: status, Request: req, Body: http.NoBody, Header: http.Header{
		"Www-Authenticate": {`Bearer resource_metadata="` + a.url + `/.well-known/oauth-protected-resource/mcp"`},
	}}, o)
}

// loggedIn returns a Store with a login, in a new folder.
func (a *authority) loggedIn(t *testing.T) (s *Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s = a.open(dir)
	if err := a.logIn(t.Context(), s, http.StatusUnauthorized, Options{Show: browser(t)}); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// browser returns the user's browser, which follows redirects.
func browser(t *testing.T) func(string) {
	var browsing sync.WaitGroup
	t.Cleanup(browsing.Wait)
	return func(address string) { browsing.Go(func() { get(t, address) }) }
}

func get(t *testing.T, address string) (status int, page string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}
