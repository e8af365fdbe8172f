package login

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func machineAuthority(t *testing.T) *authority {
	t.Helper()
	a := newAuthority(t)
	a.oauth = &config.OAuth{ClientID: "crm bot", ClientSecret: "s3cret/+value", Machine: true}
	// A server for machines need not know of logins of people.
	a.Metadata = func(m map[string]any) {
		delete(m, "code_challenge_methods_supported")
		delete(m, "authorization_endpoint")
		delete(m, "registration_endpoint")
	}
	return a
}

// acquired returns the token after the server asked for one.
func acquired(t *testing.T, s *Store, rejected string) string {
	t.Helper()
	if token := tokenOf(t, s, rejected); token != "" {
		return token
	}
	again, err := refuse(t, s, rejected, 401, "Bearer")
	if err != nil || !again {
		t.Fatalf("%v, %v", again, err)
	}
	return tokenOf(t, s, rejected)
}

func (a *authority) requests() []url.Values {
	a.Lock()
	defer a.Unlock()
	return a.Forms
}

// TestMachineLogsInWithoutUser once for all processes.
func TestMachineLogsInWithoutUser(t *testing.T) {
	a := machineAuthority(t)
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		s := a.open(dir)
		for range 3 {
			all.Go(func() {
				if got := acquired(t, s, ""); got != "access-token-1" {
					t.Errorf("got %q", got)
				}
			})
		}
	}
	all.Wait()
	forms := a.requests()
	if len(forms) != 1 {
		t.Fatalf("%d requests for tokens", len(forms))
	}
	form := forms[0]
	if form.Get("grant_type") != "client_credentials" || form.Get("resource") != a.URL+"/mcp" || form.Get("scope") != "tools" {
		t.Errorf("posted %v", form)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("kept in %v", files)
	}
	if body, err := os.ReadFile(files[0]); err != nil || strings.Contains(string(body), "s3cret") {
		t.Errorf("the secret of the entry is in the file: %s, %v", body, err)
	}
}

func TestMachineSendsItsSecretAsTheServerTakesIt(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("crm+bot:s3cret%2F%2Bvalue"))
	for name, tt := range map[string]struct {
		methods []string
		basic   string
		post    string
	}{
		"basic":  {[]string{"client_secret_basic"}, basic, ""},
		"post":   {[]string{"private_key_jwt", "client_secret_post"}, "", "s3cret/+value"},
		"unsaid": {nil, basic, ""}, // what RFC 8414 has as the default
	} {
		t.Run(name, func(t *testing.T) {
			a := machineAuthority(t)
			inner := a.Metadata
			a.Metadata = func(m map[string]any) { inner(m); m["token_endpoint_auth_methods_supported"] = tt.methods }
			acquired(t, a.open(t.TempDir()), "")
			a.Lock()
			defer a.Unlock()
			if a.Basic[0] != tt.basic || a.Forms[0].Get("client_secret") != tt.post {
				t.Errorf("sent %q and %v", a.Basic[0], a.Forms[0])
			}
		})
	}
}

// TestMachineFindsOutHowItsSecretIsTaken where the server does not say, and remembers.
func TestMachineFindsOutHowItsSecretIsTaken(t *testing.T) {
	a := machineAuthority(t)
	a.noBasic = true
	s := a.open(t.TempDir())
	acquired(t, s, "")
	s.kept.Token.Expiry = time.Now().Add(-time.Minute)
	if got := tokenOf(t, s, ""); got != "access-token-2" {
		t.Errorf("got %q", got)
	}
	a.Lock()
	defer a.Unlock()
	if len(a.Basic) != 3 || a.Basic[0] == "" || a.Basic[1] != "" || a.Basic[2] != "" || a.Forms[2].Get("client_secret") != "s3cret/+value" {
		t.Errorf("sent %q", a.Basic)
	}
}

func TestMachineRenewsItsToken(t *testing.T) {
	a := machineAuthority(t)
	a.Life = time.Second // the library takes a token for expired before its end
	dir := t.TempDir()
	s := a.open(dir)
	if again, err := refuse(t, s, "", 401, "Bearer"); !again || err != nil {
		t.Fatal(again, err)
	}
	a.Lock()
	a.Life = time.Hour
	a.Unlock()
	for range 2 {
		if got := tokenOf(t, a.open(dir), ""); got != "access-token-2" {
			t.Errorf("got %q", got)
		}
	}
	if got := acquired(t, s, "access-token-2"); got != "access-token-3" {
		t.Errorf("after the server rejected it: %q", got)
	}
	for i, form := range a.requests() {
		if form.Get("grant_type") != "client_credentials" || form.Get("resource") != a.URL+"/mcp" {
			t.Errorf("request %d: %v", i+1, form)
		}
	}
}

// TestMachineUsesNoTokenOfAnotherClient, fresh or expired: the entry has a new one.
func TestMachineUsesNoTokenOfAnotherClient(t *testing.T) {
	for _, life := range []time.Duration{time.Second, time.Hour} { // the library takes one of a second for expired
		a := machineAuthority(t)
		a.Life = life
		dir := t.TempDir()
		if again, err := refuse(t, a.open(dir), "", 401, "Bearer"); !again || err != nil {
			t.Fatal(again, err)
		}
		a.Lock()
		a.Life = time.Hour
		a.Unlock()
		a.oauth = &config.OAuth{ClientID: "new", ClientSecret: "new-s3cret", Machine: true}
		if got := acquired(t, a.open(dir), ""); got != "access-token-2" {
			t.Errorf("got %q", got)
		}
		a.Lock()
		if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("new:new-s3cret")); len(a.Basic) != 2 || a.Basic[1] != want {
			t.Errorf("the tokens are for %q", a.Basic)
		}
		a.Unlock()
	}
}

// TestMachineStepsUp by itself, once.
func TestMachineStepsUp(t *testing.T) {
	a := machineAuthority(t)
	s := a.open(t.TempDir())
	token := acquired(t, s, "")
	again, err := refuse(t, s, token, 403, `Bearer error="insufficient_scope", scope="write"`)
	if !again || err != nil {
		t.Fatal(again, err)
	}
	forms := a.requests()
	if got := forms[len(forms)-1].Get("scope"); got != "tools write" {
		t.Errorf("asked for %q", got)
	}
	token = tokenOf(t, s, "")
	again, err = refuse(t, s, token, 403, `Bearer error="insufficient_scope", scope="write"`)
	mcptest.WantError(t, err, `the scope "write"`, "the service has to allow it to the client")
	if again || len(a.requests()) != len(forms) {
		t.Errorf("it asks for the same again: %v, %v", again, a.requests())
	}
}

// TestMachineDoesNotGuessWhatIsMissing: another token would not have it either.
func TestMachineDoesNotGuessWhatIsMissing(t *testing.T) {
	a := machineAuthority(t)
	_, err := refuse(t, a.open(t.TempDir()), "", 403, `Bearer error="insufficient_scope"`)
	mcptest.WantError(t, err, "does not allow this to the client of the entry; the service has to allow it")
	if got := a.requests(); len(got) > 0 {
		t.Errorf("posted %v", got)
	}
}

func TestMachineThatIsRefusedSaysWhy(t *testing.T) {
	a := machineAuthority(t)
	a.Metadata = func(m map[string]any) { m["token_endpoint"] = a.URL + "/refuses" }
	s := a.open(t.TempDir())
	_, err := refuse(t, s, "", 401, "Bearer")
	mcptest.WantError(t, err, `logging in to server "fake"`, "as the client of the entry", "404")
}

// TestMachineIsForOneAuthorizationServer: the server says which one it is, and could
// have the secret sent to itself.
func TestMachineIsForOneAuthorizationServer(t *testing.T) {
	a, thief := machineAuthority(t), newAuthority(t)
	dir := t.TempDir()
	s := a.open(dir)
	token := acquired(t, s, "")
	a.Resource = func(m map[string]any) { m["authorization_servers"] = []string{thief.URL} }
	tokenOf(t, s, token)
	_, err := refuse(t, s, token, 401, "Bearer")
	mcptest.WantError(t, err, thief.URL, a.URL, `"issuer"`)
	a.oauth = &config.OAuth{ClientID: "crm bot", ClientSecret: "s3cret/+value", Machine: true, Issuer: a.URL}
	_, err = refuse(t, a.open(t.TempDir()), "", 401, "Bearer") // also the first time
	mcptest.WantError(t, err, thief.URL, `"issuer"`)
	if got := thief.requests(); len(got) > 0 {
		t.Errorf("the other one got %v", got)
	}
	a.oauth.Issuer = thief.URL
	if again, err := refuse(t, a.open(dir), token, 401, "Bearer"); !again || err != nil {
		t.Errorf("with the new issuer in the entry: %v, %v", again, err)
	}
}

func TestMachineNeedsNoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	a := machineAuthority(t)
	s := a.open("")
	if got := acquired(t, s, ""); got != "access-token-1" || tokenOf(t, s, "") != got {
		t.Errorf("got %q", got)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// TestLoginCommandOfAMachine opens no browser.
func TestLoginCommandOfAMachine(t *testing.T) {
	a := machineAuthority(t)
	s := a.open(t.TempDir())
	err := a.logIn(t.Context(), s, http.StatusUnauthorized, func(string) { t.Error("a browser is asked for") })
	if err != nil || tokenOf(t, s, "") != "access-token-1" {
		t.Error(err)
	}
}
