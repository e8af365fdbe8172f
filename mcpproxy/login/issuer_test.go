package login

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// movedTo makes the server name another authorization server than before.
func (a *authority) movedTo(next *authority) {
	a.Resource = func(m map[string]any) { m["authorization_servers"] = []string{next.URL} }
}

// forget takes a member out of a login that is kept, as of a version that did not keep it.
func forget(t *testing.T, s *Store, member string) {
	t.Helper()
	var kept map[string]any
	body, err := os.ReadFile(s.path)
	if err == nil {
		err = json.Unmarshal(body, &kept)
	}
	if err != nil || kept[member] == nil {
		t.Fatalf("%s, %v", body, err)
	}
	delete(kept, member)
	if body, err = json.Marshal(kept); err == nil {
		err = os.WriteFile(s.path, body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestClientOfTheEntryIsForOneAuthorizationServer: the server says which one it is, and could
// have the secret sent to itself. Where there is no such secret, a server may move.
func TestClientOfTheEntryIsForOneAuthorizationServer(t *testing.T) {
	known := config.OAuth{ClientID: "known", ClientSecret: "known-s3cret"}
	other := config.OAuth{ClientID: "other", ClientSecret: "other-s3cret"}
	for name, tt := range map[string]struct {
		first, then     config.OAuth
		named, unissued bool // the entry names the new one, the login that is kept names none
		refused         bool
	}{
		"the same client":                     {first: known, then: known, refused: true},
		"the same, and the entry names it":    {first: known, then: known, named: true},
		"another client":                      {first: known, then: other},
		"a client that registers itself":      {},
		"a login of before issuers were kept": {first: known, then: known, unissued: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, next := newAuthority(t), newAuthority(t)
			a.oauth = &tt.first
			s, dir := a.loggedIn(t)
			if tt.unissued {
				forget(t, s, "issuer")
			}
			a.movedTo(next)
			a.oauth = &tt.then
			if tt.named {
				a.oauth.Issuer = next.URL
			}
			err := a.logIn(t.Context(), a.open(dir), http.StatusUnauthorized, browser(t))
			if !tt.refused {
				if err != nil || len(next.requests()) != 1 {
					t.Errorf("%v, posted %v", err, next.requests())
				}
				return
			}
			mcptest.WantError(t, err, next.URL, a.URL, `"issuer"`)
			next.Lock()
			defer next.Unlock()
			if len(next.Queries) > 0 || len(next.Forms) > 0 {
				t.Errorf("the other one got %v, %v", next.Queries, next.Forms)
			}
		})
	}
}

// TestUnreadableLoginIsReplaced as in a new process: what this one read before does not count.
func TestUnreadableLoginIsReplaced(t *testing.T) {
	for name, machine := range map[string]bool{"of a user": false, "of a machine": true} {
		t.Run(name, func(t *testing.T) {
			a, next := newAuthority(t), newAuthority(t)
			a.oauth = &config.OAuth{ClientID: "known", ClientSecret: "known-s3cret", Machine: machine}
			s, dir := a.loggedIn(t)
			if err := os.WriteFile(s.path, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			a.movedTo(next)
			a.mustLogIn(t, s)
			if got := tokenOf(t, a.open(dir), ""); got != "access-token-1" || len(next.requests()) != 1 {
				t.Errorf("got %q after %v", got, next.requests())
			}
		})
	}
}

// TestLoginWithoutResourceIsRenewed for none: an empty one would be an address that is wrong.
func TestLoginWithoutResourceIsRenewed(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	forget(t, s, "resource")
	tokenOf(t, a.open(filepath.Dir(s.path)), "access-token-1")
	form := a.requests()[1]
	if form.Get("grant_type") != "refresh_token" || form.Has("resource") {
		t.Errorf("posted %v", form)
	}
}
