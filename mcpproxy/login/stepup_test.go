package login

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// refuse tells a Store how the server answered a request with a token.
func refuse(t *testing.T, s *Store, token string, status int, challenge string) (again bool, err error) {
	t.Helper()
	return s.Refused(t.Context(), token, &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {challenge}}, Body: http.NoBody})
}

// asked are the scopes of the last request to log in.
func (a *authority) asked() []string {
	a.Lock()
	defer a.Unlock()
	return strings.Fields(a.Queries[len(a.Queries)-1].Get("scope"))
}

func (a *authority) mustLogIn(t *testing.T, s *Store) {
	t.Helper()
	if err := a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t)); err != nil {
		t.Fatal(err)
	}
}

// TestNextLoginAsksForTheMissingScope in addition to those that it had.
func TestNextLoginAsksForTheMissingScope(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	again, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="files:write admin"`)
	mcptest.WantError(t, err, "does not allow this", `"files:write"`, `"admin"`, "toolcell servers login fake")
	if again {
		t.Error("there is another token without a login")
	}
	if got := tokenOf(t, s, ""); got != "access-token-1" {
		t.Errorf("the token that there is became %q", got)
	}
	other := a.open(dir) // `servers login` is another process
	a.mustLogIn(t, other)
	if got := a.asked(); !slices.Equal(got, []string{"tools", "files:write", "admin"}) {
		t.Errorf("asked for %q", got)
	}
	_, err = refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="third"`)
	mcptest.WantError(t, err, `the scope "third"`)
	a.mustLogIn(t, other)
	if got := a.asked(); !slices.Equal(got, []string{"tools", "files:write", "admin", "third"}) {
		t.Errorf("asked for %q, so the scopes of one call are lost to another", got)
	}
}

// TestScopeThatIsNotGivenMakesNoCircle: what the login asked for is not to be had by
// another.
func TestScopeThatIsNotGivenMakesNoCircle(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	_, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="tools"`)
	mcptest.WantError(t, err, `the scope "tools"`, "although it asked for that")
	if strings.Contains(err.Error(), "servers login") {
		t.Errorf("it leads in a circle: %v", err)
	}
}

func TestRefusalsThatNameNoScope(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	_, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope"`)
	mcptest.WantError(t, err, "does not allow this; to ask for more", "toolcell servers login fake")
	for _, challenge := range []string{"", `Basic realm="x"`, `Bearer error="invalid_token", scope="x"`, `Bearer scope="`, `"`} {
		if again, err := refuse(t, s, tokenOf(t, s, ""), 403, challenge); again || err != nil {
			t.Errorf("%q: %v, %v", challenge, again, err)
		}
	}
}

// TestScopesOfTheEntryComeFirst: they are all that is asked for until a call fails.
func TestScopesOfTheEntryComeFirst(t *testing.T) {
	a := newAuthority(t)
	a.oauth = &config.OAuth{Scopes: []string{"read"}}
	s, _ := a.loggedIn(t)
	if got := a.asked(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("asked for %q", got)
	}
	if _, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="write"`); err == nil {
		t.Error("no error")
	}
	for range 2 {
		a.mustLogIn(t, s)
		if got := a.asked(); !slices.Equal(got, []string{"read", "write"}) {
			t.Errorf("asked for %q", got)
		}
	}
}

// TestChallengeOfACallIsKept: some servers ask for a login only when a tool is called,
// and `servers login` calls none.
func TestChallengeOfACallIsKept(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	s := a.open(dir)
	if again, err := refuse(t, s, "", 401, `Bearer scope="basic", resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`); again || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	if tokenOf(t, s, "") != "" {
		t.Error("there is a token")
	}
	if was, err := a.open(dir).Remove(t.Context()); was || err != nil {
		t.Errorf("a challenge counts as a login: %v, %v", was, err)
	}
	if _, err := refuse(t, s, "", 401, `Bearer scope="basic"`); err != nil {
		t.Error(err)
	}
	if err := a.logIn(t.Context(), a.open(dir), http.StatusOK, browser(t)); err != nil {
		t.Fatal(err)
	}
	if got := a.asked(); !slices.Equal(got, []string{"basic"}) {
		t.Errorf("asked for %q", got)
	}
}

// TestMetadataThatACallNamedIsFound by a login whose own request is not refused, and the scope
// that another call named is asked for.
func TestMetadataThatACallNamedIsFound(t *testing.T) {
	const metadata, scope = `Bearer resource_metadata="%s/elsewhere"`, `Bearer scope="basic"`
	for _, test := range []struct {
		want       string
		challenges []string
	}{{"elsewhere", []string{metadata}}, {"basic", []string{metadata, scope}}, {"basic", []string{scope, metadata}}} {
		a := newAuthority(t)
		found := false
		a.Mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, _ *http.Request) {
			found = true
			mcptest.Respond(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}, "scopes_supported": []string{"elsewhere"}})
		})
		dir := t.TempDir()
		for _, c := range test.challenges {
			if again, err := refuse(t, a.open(dir), "", 401, strings.ReplaceAll(c, "%s", a.URL)); again || err != nil {
				t.Errorf("%v, %v", again, err)
			}
		}
		if err := a.open(dir).LogIn(t.Context(), &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, "", browser(t)); err != nil {
			t.Fatal(err)
		}
		if got := a.asked(); !slices.Equal(got, []string{test.want}) || !found {
			t.Errorf("%q: asked for %q; its metadata was found: %v", test.challenges, got, found)
		}
	}
}

// TestRefusalThatNamesNothingLeavesNothing on disk.
func TestRefusalThatNamesNothingLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logins")
	s := newAuthority(t).open(dir)
	for status, challenge := range map[int]string{401: "Bearer", 403: `Bearer scope="x"`} {
		if again, err := refuse(t, s, "", status, challenge); again || err != nil {
			t.Errorf("%d: %v, %v", status, again, err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a folder is made: %v", err)
	}
}

// TestNoScopeIsLostToAnotherChallenge: a server may name what one request needs alone.
func TestNoScopeIsLostToAnotherChallenge(t *testing.T) {
	a := newAuthority(t)
	s := a.open(t.TempDir())
	a.mustLogIn(t, s)
	if got := a.asked(); !slices.Equal(got, []string{"tools"}) {
		t.Errorf("asked for %q", got)
	}
	if _, err := refuse(t, s, tokenOf(t, s, ""), 401, `Bearer scope="resources"`); err != nil {
		t.Fatal(err)
	}
	a.mustLogIn(t, s)
	if got := a.asked(); !slices.Equal(got, []string{"resources", "tools"}) {
		t.Errorf("asked for %q", got)
	}
}

// TestScopeMissedDuringALoginIsKept for the next one.
func TestScopeMissedDuringALoginIsKept(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	other, open := a.open(dir), browser(t)
	err := a.logIn(t.Context(), s, http.StatusUnauthorized, func(address string) {
		if _, err := refuse(t, other, tokenOf(t, other, ""), 403, `Bearer error="insufficient_scope", scope="write"`); err == nil {
			t.Error("a refusal for lack of a scope is no error")
		}
		open(address)
	})
	if err != nil {
		t.Fatal(err)
	}
	a.mustLogIn(t, s)
	if got := a.asked(); !slices.Contains(got, "write") {
		t.Errorf("asked for %q", got)
	}
}

// TestHostileChallengeIsBounded: what a server says goes to a terminal and into a file.
func TestHostileChallengeIsBounded(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	scope := strings.Repeat("\x1b[31mred \u202e ", 1000) + strings.Repeat("x", 10_000) + " good " + strings.Repeat("a b\x00c ", 1000)
	for i := range 1000 {
		scope += " s" + string(rune('a'+i%26)) + strings.Repeat("z", i%30)
	}
	_, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="`+scope+`"`)
	mcptest.WantError(t, err, `"good"`)
	if len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\x1b\x00\u202e") {
		t.Errorf("%d bytes: %.300q", len(err.Error()), err)
	}
	st, err := os.Stat(s.path)
	if err != nil || st.Size() > 64<<10 {
		t.Errorf("the file has %d bytes, %v", st.Size(), err)
	}
	for range 20 {
		if _, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="`+scope+`"`); err == nil {
			t.Error("no error")
		}
	}
	again, err := refuse(t, s, tokenOf(t, s, ""), 403, `Bearer error="insufficient_scope", scope="`+strings.Repeat("more ", 200_000)+`"`)
	if again || err != nil { // no challenge at all
		t.Errorf("%v, %v", again, err)
	}
	if slices.ContainsFunc(s.kept.Missing, func(scope string) bool { return strings.ContainsAny(scope, "\x1b\x00\u202e") }) {
		t.Errorf("kept are %q", s.kept.Missing)
	}
	if s.kept == nil || len(s.kept.Missing) > maxScopes {
		t.Errorf("kept are %d scopes", len(s.kept.Missing))
	}
}

// TestFullDiskHidesNoScope: keeping it is what fails, and the user still reads what is
// missing.
func TestFullDiskHidesNoScope(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	token := tokenOf(t, s, "")
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path, 0o700); err != nil { // root may write to every folder
		t.Fatal(err)
	}
	_, err := refuse(t, s, token, 403, `Bearer error="insufficient_scope", scope="write"`)
	mcptest.WantError(t, err, `the scope "write"`, "could not be kept")
	if files, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestRenewalsNameTheResource(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	tokenOf(t, s, "access-token-1")
	tokenOf(t, a.open(dir), "access-token-2")
	a.Lock()
	defer a.Unlock()
	if len(a.Forms) != 3 {
		t.Fatalf("%d requests", len(a.Forms))
	}
	for i, form := range a.Forms {
		if got := form["resource"]; len(got) != 1 || got[0] != a.URL+"/mcp" {
			t.Errorf("request %d (%s) is for %q", i+1, form.Get("grant_type"), got)
		}
		if form.Get("client_id") != "registered" || a.Basic[i] != "" {
			t.Errorf("request %d is of %v, %q", i+1, form, a.Basic[i])
		}
	}
}

// TestMetadataDocumentIsTheClient where the service takes one, and nowhere else.
func TestMetadataDocumentIsTheClient(t *testing.T) {
	const document = "https://client.example/toolcell.json"
	for taken, want := range map[bool]string{true: document, false: "registered"} {
		a := newAuthority(t)
		a.oauth = &config.OAuth{MetadataURL: document}
		a.Metadata = func(m map[string]any) { m["client_id_metadata_document_supported"] = taken }
		a.loggedIn(t)
		a.Lock()
		if got := a.Queries[0].Get("client_id"); got != want || a.Forms[0].Get("client_id") != want || a.Basic[0] != "" {
			t.Errorf("taken %v: the client is %q, %v, %q", taken, got, a.Forms[0], a.Basic)
		}
		a.Unlock()
	}
}

// TestBrowserComesBackWhereTheClientIsRegistered: services compare the address as text.
func TestBrowserComesBackWhereTheClientIsRegistered(t *testing.T) {
	free, err := newLoopback("")
	if err != nil {
		t.Fatal(err)
	}
	redirect := strings.Replace(strings.Replace(free.url, "127.0.0.1", "localhost", 1), "/callback", "/oauth/back", 1)
	a := newAuthority(t) // before the port is free for it
	free.close()
	a.oauth = &config.OAuth{ClientID: "known", RedirectURL: redirect}
	a.loggedIn(t)
	a.Lock()
	defer a.Unlock()
	if a.Queries[0].Get("redirect_uri") != redirect || a.Forms[0].Get("redirect_uri") != redirect {
		t.Errorf("%v, %v", a.Queries, a.Forms)
	}
}
