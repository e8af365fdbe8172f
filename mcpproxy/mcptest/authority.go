package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// An Authority is an authorization server, and what the MCP server at /mcp of the same host
// publishes of it. It registers clients, wants PKCE, and takes each refresh token once: when
// one comes again, it withdraws everything. Access tokens are access-token-1 and so on.
type Authority struct {
	URL string
	Mux *http.ServeMux // that answers

	Metadata func(map[string]any)                              // changes what is published: by the authorization server
	Resource func(map[string]any)                              // and by the MCP server
	Iss      string                                            // in the redirect
	Refuse   func(w http.ResponseWriter, r *http.Request) bool // answers a request for a token itself, if it reports so

	sync.Mutex // over the fields that follow, and during Refuse
	Life       time.Duration
	Queries    []url.Values // with which a browser came
	Forms      []url.Values // that came for tokens
	Basic      []string     // with which Authorization
	Renewals   int
	Withdrawn  bool

	redirect string                // of the client that was registered last
	codes    map[string]url.Values // the queries that led to them
	access   map[string]accessToken
	refresh  map[string]bool // true: not used yet
}

type accessToken struct {
	scope string
	until time.Time
}

// registered is the ID of every client that registers.
const registered = "registered"

// NewAuthority starts an authorization server that ends with the test.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{Mux: http.NewServeMux(), Life: time.Hour, codes: map[string]url.Values{}, access: map[string]accessToken{}, refresh: map[string]bool{}}
	server := httptest.NewServer(a.Mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	a.URL = server.URL
	a.Mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		publish(w, a.Resource, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}, "scopes_supported": []string{"tools"}})
	})
	a.Mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		publish(w, a.Metadata, map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		})
	})
	a.Mux.HandleFunc("/register", a.register)
	a.Mux.HandleFunc("/authorize", a.authorize)
	a.Mux.HandleFunc("/token", a.token)
	return a
}

func publish(w http.ResponseWriter, change func(map[string]any), published map[string]any) {
	if change != nil {
		change(published)
	}
	Respond(w, http.StatusOK, published)
}

// Respond answers a request with JSON.
func Respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	var client struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(r.Body).Decode(&client)
	a.Lock()
	defer a.Unlock()
	a.redirect = client.RedirectURIs[0]
	Respond(w, http.StatusCreated, map[string]any{"client_id": registered, "redirect_uris": client.RedirectURIs, "token_endpoint_auth_method": "none"})
}

func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.Lock()
	defer a.Unlock()
	a.Queries = append(a.Queries, q)
	if q.Get("client_id") == registered && q.Get("redirect_uri") != a.redirect || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	a.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if a.Iss != "" {
		back.Set("iss", a.Iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *Authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.Lock()
	defer a.Unlock()
	a.Forms = append(a.Forms, r.PostForm)
	a.Basic = append(a.Basic, r.Header.Get("Authorization"))
	if a.Refuse != nil && a.Refuse(w, r) {
		return
	}
	id, _, basic := r.BasicAuth()
	if !basic {
		id = r.Form.Get("client_id")
	}
	scope, good := r.Form.Get("scope"), true
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		q := a.codes[r.Form.Get("code")]
		delete(a.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		good = q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && q.Get("client_id") == id
		scope = q.Get("scope")
	case "refresh_token":
		fresh, known := a.refresh[r.Form.Get("refresh_token")]
		a.Withdrawn = a.Withdrawn || known && !fresh
		if good = fresh && !a.Withdrawn; good {
			a.refresh[r.Form.Get("refresh_token")] = false
			a.Renewals++
		}
	}
	if !good {
		Respond(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	n := len(a.access) + 1
	access, refresh := fmt.Sprintf("access-token-%d", n), fmt.Sprintf("refresh-token-%d", n)
	a.access[access], a.refresh[refresh] = accessToken{scope, time.Now().Add(a.Life)}, true
	Respond(w, http.StatusOK, map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(a.Life.Seconds()),
	})
}

// Scope returns that of an access token; ok is false if the token is not good.
func (a *Authority) Scope(token string) (scope string, ok bool) {
	a.Lock()
	defer a.Unlock()
	known := a.access[token]
	return known.scope, time.Now().Before(known.until) && !a.Withdrawn
}

// WithdrawAccess makes all access tokens bad, as a restarted server would.
func (a *Authority) WithdrawAccess() {
	a.Lock()
	defer a.Unlock()
	for token := range a.access {
		a.access[token] = accessToken{}
	}
}

// Browse is the user's browser, which follows redirects. It returns where they end.
func Browse(t *testing.T, address string) (status int, page string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}
