package mcpproxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
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

func TestLoginLetsCallsThrough(t *testing.T) {
	a := newAuthority(t)
	dir := filepath.Join(t.TempDir(), "state", "logins")
	p := proxyFor(t, Options{TokenDir: dir}, a.Server)
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, "toolcell servers login fake")
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`) // at once, though it failed just now

	for path, mode := range map[string]os.FileMode{dir: 0o700, onlyFile(t, dir): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	mustCall(t, proxyFor(t, Options{TokenDir: dir}, a.Server), "echo", `{}`) // another process

	if was, err := p.Logout("fake"); err != nil || !was {
		t.Errorf("logout: %v, %v", was, err)
	}
	if was, err := p.Logout("fake"); err != nil || was {
		t.Errorf("second logout: %v, %v", was, err)
	}
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, "toolcell servers login fake")
}

func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("%d files in %s", len(files), dir)
	}
	return files[0]
}

func TestTokensAreRenewedOnceByManyProcesses(t *testing.T) {
	for name, end := range map[string]func(*authority){
		"expired":   func(*authority) {}, // they live too short to be used without
		"withdrawn": (*authority).withdrawAccess,
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			if name == "expired" {
				a.life = time.Second // less than what counts as still good
			}
			dir := t.TempDir()
			first := proxyFor(t, Options{TokenDir: dir}, a.Server)
			if err := a.logIn(first); err != nil {
				t.Fatal(err)
			}
			a.life = time.Hour
			end(a)
			var wg sync.WaitGroup
			for range 4 { // as many processes would, each with its own memory
				p := proxyFor(t, Options{TokenDir: dir}, a.Server)
				for range 3 {
					wg.Go(func() { mustCall(t, p, "echo", `{}`) })
				}
			}
			wg.Wait()
			mustCall(t, first, "echo", `{}`)
			if a.withdrawn || a.renewals != 1 {
				t.Errorf("%d renewals; a refresh token was used twice: %v", a.renewals, a.withdrawn)
			}
		})
	}
}

func TestEndedLoginSaysSoAndShowsNoToken(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	p := proxyFor(t, Options{TokenDir: dir}, a.Server)
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
	a.mu.Lock()
	a.withdrawn = true
	a.mu.Unlock()
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, "the login has ended", "toolcell servers login fake")
	if strings.Contains(err.Error(), "access-") || strings.Contains(err.Error(), "refresh-") {
		t.Errorf("%v", err)
	}
	a.mu.Lock()
	a.withdrawn = false
	a.mu.Unlock()
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestLoginWithTheClientOfTheEntry(t *testing.T) {
	a := newAuthority(t)
	a.noRegistration = true
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	mcptest.WantError(t, a.logIn(p), `logging in to server "fake"`, "register a client with the service by hand")
	a.Server.OAuth = &config.OAuth{ClientID: "known-client", Scopes: []string{"mine"}}
	p = proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	asked := ""
	if err := p.Login(t.Context(), "fake", func(address string) { asked = address; browse(t, address) }); err != nil {
		t.Fatal(err)
	}
	if u, _ := url.Parse(asked); u.Query().Get("scope") != "mine" {
		t.Errorf("asked for %s", asked)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestServerThatAsksForALoginOnlyAtACall(t *testing.T) {
	a := newAuthority(t)
	a.opaque = true
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	_, err := p.Tools(t.Context(), "fake")
	mcptest.WantError(t, err, "toolcell servers login fake")
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestLoginRefusesMixUps(t *testing.T) {
	for name, tt := range map[string]struct {
		lie  func(*authority)
		want string
	}{
		"metadata of another issuer": {func(a *authority) { a.issuer = "https://evil.example" }, "does not match issuer"},
		"answer of another issuer":   {func(a *authority) { a.iss = "https://evil.example" }, "does not match expected issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			tt.lie(a)
			p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
			mcptest.WantError(t, a.logIn(p), tt.want)
			_, err := p.Tools(t.Context(), "fake")
			mcptest.WantError(t, err, "needs a login")
		})
	}
	t.Run("metadata of another resource", func(t *testing.T) {
		evil := newAuthority(t) // would like to have a token for the good one
		a := newAuthority(t)
		a.resource = evil.Server.URL
		p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
		_ = a.logIn(p) // may only use the server's own host
		if len(evil.codes)+len(evil.access) > 0 {
			t.Error("the other authority was asked")
		}
	})
}

func TestLoginIsNotEndedByStrangers(t *testing.T) {
	a := newAuthority(t)
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	err := p.Login(t.Context(), "fake", func(address string) {
		u, _ := url.Parse(address)
		back := u.Query().Get("redirect_uri")
		if !strings.HasPrefix(back, "http://127.0.0.1:") {
			t.Errorf("it comes back to %s", back)
		}
		for _, strange := range []string{"?code=stolen&state=guess", "?error=access_denied", "", "/../x?state=" + u.Query().Get("state")} {
			resp, err := http.Get(back + strange)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("%q was answered %s", strange, resp.Status)
			}
		}
		browse(t, address)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoginThatTheUserRefusesOrLeaves(t *testing.T) {
	a := newAuthority(t)
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	err := p.Login(t.Context(), "fake", func(address string) {
		u, _ := url.Parse(address)
		browse(t, fmt.Sprintf("%s?error=access_denied&error_description=no+thanks&state=%s", u.Query().Get("redirect_uri"), u.Query().Get("state")))
	})
	mcptest.WantError(t, err, "the authorization server refused: access_denied no thanks")
	ctx, cancel := context.WithCancelCause(t.Context())
	err = p.Login(ctx, "fake", func(string) { cancel(fmt.Errorf("left")) })
	mcptest.WantError(t, err, "waiting for the browser: left")
}

func TestLoginWhereThereIsNoneToBeHad(t *testing.T) {
	stdio := fake(t)
	header := web(t, config.HTTP, answers(nil))
	header.Name, header.Alias, header.Headers = "header", "header", map[string]string{"authorization": "Bearer mine"}
	open := web(t, config.HTTP, answers(nil))
	open.Name, open.Alias = "open", "open"
	dead := config.Server{Name: "dead", Alias: "dead", Transport: config.HTTP, URL: "http://127.0.0.1:1/mcp", Source: "test.json"}
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, stdio, header, open, dead)
	for name, want := range map[string]string{
		"fake": "is a command and takes no login", "header": "has an Authorization header in test.json",
		"open": "does not ask for a login", "dead": "nothing listens there", "none": "there is no server",
	} {
		mcptest.WantError(t, p.Login(t.Context(), name, func(string) { t.Error("an address was shown") }), want)
	}
}

func TestBrokenLoginFileIsNamed(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	p := proxyFor(t, Options{TokenDir: dir}, a.Server)
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(onlyFile(t, dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := p.Tools(t.Context(), "fake")
	mcptest.WantError(t, err, "cannot be read", "toolcell servers login fake")
}

// TestStepUp: a call that needs a further scope says so, and the next login gets it.
func TestStepUp(t *testing.T) {
	a := newAuthority(t)
	a.needs = "files:write"
	dir := t.TempDir()
	p := proxyFor(t, Options{TokenDir: dir}, a.Server)
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, `the scope "files:write"`, "toolcell servers login fake")
	if err := a.logIn(proxyFor(t, Options{TokenDir: dir}, a.Server)); err != nil { // as the command does
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
	a.needs = "never"
	a.mu.Lock()
	a.scopes = map[string]string{} // whatever is asked for
	a.mu.Unlock()
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, `the scope "never"`)
}

// TestMachineCallsWithoutLogin: a client of its own needs no user, also for a further
// scope.
func TestMachineCallsWithoutLogin(t *testing.T) {
	a := newAuthority(t)
	a.Server.OAuth = &config.OAuth{ClientID: "bot", ClientSecret: "bot-s3cret", Machine: true}
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	mustCall(t, p, "echo", `{}`)
	a.withdrawAccess()
	mustCall(t, p, "echo", `{}`)
	a.needs = "files:write"
	mustCall(t, p, "echo", `{}`)

	a.Server.OAuth = &config.OAuth{ClientID: "bot", ClientSecret: "wr0ng-s3cret", Machine: true}
	_, err := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server).Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, "as the client of the entry", "401", "invalid_client")
	if strings.Contains(err.Error(), "wr0ng-s3cret") {
		t.Errorf("%v", err)
	}
}

// TestLoginToServerThatKnowsNoInitialize: the refusal of server/discover is what counts,
// not that of the older handshake that is tried then.
func TestLoginToServerThatKnowsNoInitialize(t *testing.T) {
	a := newAuthority(t)
	a.modern = true
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	_, err := p.Tools(t.Context(), "fake")
	mcptest.WantError(t, err, "toolcell servers login fake")
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
}
