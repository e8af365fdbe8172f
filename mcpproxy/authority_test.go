package mcpproxy

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// authority is an authorization server and the MCP server that it guards. It
// registers clients, wants PKCE, and takes each refresh token once: when one
// comes again, it withdraws everything.
type authority struct {
	t      *testing.T
	server *httptest.Server
	Server config.Server

	life           time.Duration // of an access token
	issuer         string        // in the metadata, if it is to lie
	resource       string        // likewise
	iss            string        // in the redirect, if it is to lie
	noRegistration bool
	opaque         bool   // asks for a login only when a tool is called
	modern         bool   // knows no initialize, and lets it through
	needs          string // the scope that a call needs

	mu        sync.Mutex
	clients   map[string]string // id to redirect
	codes     map[string]url.Values
	access    map[string]time.Time
	scopes    map[string]string // of access tokens
	refresh   map[string]bool   // true: not used yet
	renewals  int
	withdrawn bool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{
		t: t, life: time.Hour, clients: map[string]string{"known-client": ""}, codes: map[string]url.Values{},
		access: map[string]time.Time{}, scopes: map[string]string{}, refresh: map[string]bool{},
	}
	mux := http.NewServeMux()
	a.server = httptest.NewServer(mux)
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	a.Server = config.Server{Name: "fake", Alias: "fake", Transport: config.Remote, URL: a.server.URL + "/mcp", Source: "test.json"}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		resource := a.Server.URL
		if a.resource != "" {
			resource = a.resource
		}
		respond(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{a.server.URL}, "scopes_supported": []string{"tools"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		issuer := a.server.URL
		if a.issuer != "" {
			issuer = a.issuer
		}
		meta := map[string]any{
			"issuer": issuer, "authorization_endpoint": a.server.URL + "/authorize", "token_endpoint": a.server.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		}
		if !a.noRegistration {
			meta["registration_endpoint"] = a.server.URL + "/register"
		}
		respond(w, 200, meta)
	})
	mux.HandleFunc("/register", a.register)
	mux.HandleFunc("/authorize", a.authorize)
	mux.HandleFunc("/token", a.token)
	tools := answers(nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) { a.guard(w, r, tools) })
	return a
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *authority) register(w http.ResponseWriter, r *http.Request) {
	var meta struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(r.Body).Decode(&meta)
	a.mu.Lock()
	defer a.mu.Unlock()
	id := "client-" + rand.Text()
	a.clients[id] = meta.RedirectURIs[0]
	respond(w, 201, map[string]any{"client_id": id, "redirect_uris": meta.RedirectURIs, "token_endpoint_auth_method": "none"})
}

func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	redirect, known := a.clients[q.Get("client_id")]
	if !known || redirect != "" && redirect != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") != a.Server.URL {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	a.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if a.iss != "" {
		back.Set("iss", a.iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, _, basic := r.BasicAuth(); !basic && r.Form.Get("client_id") == "" {
		respond(w, 401, map[string]string{"error": "invalid_client"})
		return
	}
	scope := r.Form.Get("scope")
	switch r.Form.Get("grant_type") {
	case "client_credentials":
		if id, secret, ok := r.BasicAuth(); !ok || id != "bot" || secret != "bot-s3cret" || r.Form.Get("resource") != a.Server.URL {
			respond(w, 401, map[string]string{"error": "invalid_client"})
			return
		}
	case "authorization_code":
		q, ok := a.codes[r.Form.Get("code")]
		delete(a.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || r.Form.Get("client_id") != q.Get("client_id") {
			respond(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		scope = q.Get("scope")
	case "refresh_token":
		fresh, ok := a.refresh[r.Form.Get("refresh_token")]
		if !ok || !fresh || a.withdrawn {
			a.withdrawn = a.withdrawn || ok
			respond(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		a.refresh[r.Form.Get("refresh_token")] = false
		a.renewals++
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	a.access[access], a.refresh[refresh], a.scopes[access] = time.Now().Add(a.life), true, scope
	respond(w, 200, map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(a.life.Seconds()),
	})
}

// guard lets requests with a good token through.
func (a *authority) guard(w http.ResponseWriter, r *http.Request, next http.Handler) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	a.mu.Lock()
	good := time.Now().Before(a.access[token]) && !a.withdrawn
	scoped := a.needs == "" || slices.Contains(strings.Fields(a.scopes[token]), a.needs)
	a.mu.Unlock()
	if a.modern && strings.Contains(string(body), `"initialize"`) {
		http.Error(w, "Missing MCP-Protocol-Version header", http.StatusBadRequest)
		return
	}
	if good && !scoped && strings.Contains(string(body), "tools/call") {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+a.needs+`"`)
		http.Error(w, "not with this token", http.StatusForbidden)
		return
	}
	if !good && (!a.opaque || strings.Contains(string(body), "tools/")) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+a.server.URL+`/.well-known/oauth-protected-resource/mcp"`)
		http.Error(w, "token "+token+" is not good", http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r)
}

// withdrawAccess makes all access tokens bad, as a restarted server would.
func (a *authority) withdrawAccess() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// browse is the user's browser, which follows redirects.
func browse(t *testing.T, address string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

func (a *authority) logIn(p *Proxy) error {
	return p.Login(a.t.Context(), "fake", func(address string) { browse(a.t, address) })
}
