package mcpproxy

import (
	"context"
	"fmt"
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
		"withdrawn": func(a *authority) { a.WithdrawAccess() },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			if name == "expired" {
				a.Life = time.Second // less than what counts as still good
			}
			dir := t.TempDir()
			first := proxyFor(t, Options{TokenDir: dir}, a.Server)
			if err := a.logIn(first); err != nil {
				t.Fatal(err)
			}
			a.Life = time.Hour
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
			if a.Withdrawn || a.Renewals != 1 {
				t.Errorf("%d renewals; a refresh token was used twice: %v", a.Renewals, a.Withdrawn)
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
	a.Lock()
	a.Withdrawn = true
	a.Unlock()
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, "the login has ended", "toolcell servers login fake")
	if strings.Contains(err.Error(), "access-") || strings.Contains(err.Error(), "refresh-") {
		t.Errorf("%v", err)
	}
	a.Lock()
	a.Withdrawn = false
	a.Unlock()
	if err := a.logIn(p); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestLoginWithTheClientOfTheEntry(t *testing.T) {
	a := newAuthority(t)
	a.Metadata = func(m map[string]any) { delete(m, "registration_endpoint") }
	p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	mcptest.WantError(t, a.logIn(p), `logging in to server "fake"`, "register a client with the service by hand")
	a.Server.OAuth = &config.OAuth{ClientID: "known-client", Scopes: []string{"mine"}}
	p = proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
	asked := ""
	if err := p.Login(t.Context(), "fake", func(address string) { asked = address; mcptest.Browse(t, address) }); err != nil {
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
		"metadata of another issuer": {func(a *authority) { a.Metadata = func(m map[string]any) { m["issuer"] = "https://evil.example" } }, "does not match issuer"},
		"answer of another issuer":   {func(a *authority) { a.Iss = "https://evil.example" }, "does not match expected issuer"},
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
		a.Resource = func(m map[string]any) { m["resource"] = evil.Server.URL }
		p := proxyFor(t, Options{TokenDir: t.TempDir()}, a.Server)
		_ = a.logIn(p) // may only use the server's own host
		if len(evil.Queries)+len(evil.Forms) > 0 {
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
		mcptest.Browse(t, address)
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
		mcptest.Browse(t, fmt.Sprintf("%s?error=access_denied&error_description=no+thanks&state=%s", u.Query().Get("redirect_uri"), u.Query().Get("state")))
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
	a.WithdrawAccess()
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
