package login

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// answers makes the authority answer requests for tokens so from now on.
func (a *authority) answers(status int, body string) {
	a.Lock()
	defer a.Unlock()
	a.Refuse = func(w http.ResponseWriter, _ *http.Request) bool {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// TestGrantIsPostedAgainOnlyWhereTheClientWasRefused: a code or a refresh token may be used
// by then.
func TestGrantIsPostedAgainOnlyWhereTheClientWasRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   int // requests
	}{
		"by the status":     {401, "<html>who?</html>", 2},
		"the client":        {400, `{"error":"invalid_client"}`, 2},
		"two secrets":       {400, `{"error":"invalid_request"}`, 2},
		"the scope":         {400, `{"error":"invalid_scope"}`, 1},
		"the grant":         {400, `{"error":"invalid_grant"}`, 1},
		"nothing in itself": {503, "down", 1},
		"an answer in vain": {200, `{}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := machineAuthority(t)
			a.answers(tt.status, tt.body)
			if again, err := refuse(t, a.open(t.TempDir()), "", 401, "Bearer"); again || err == nil {
				t.Errorf("%v, %v", again, err)
			}
			if n := len(a.requests()); n != tt.want {
				t.Errorf("%d requests, want %d", n, tt.want)
			}
		})
	}
}

func TestLoginWithARefusedCodeLeavesTheOldOne(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	a.answers(400, `{"error":"invalid_grant"}`)
	err := a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t))
	mcptest.WantError(t, err, "exchanging the code for a token", "invalid_grant")
	if got := tokenOf(t, a.open(dir), ""); got != "access-token-1" {
		t.Errorf("got %q", got)
	}
}

// TestUserWhoRefusesEndsTheLogin without a request for a token.
func TestUserWhoRefusesEndsTheLogin(t *testing.T) {
	a := newAuthority(t)
	err := a.logIn(t.Context(), a.open(t.TempDir()), http.StatusUnauthorized, func(address string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Error(err)
			return
		}
		back := url.Values{"error": {"access_denied"}, "state": {u.Query().Get("state")}}
		mcptest.Browse(t, u.Query().Get("redirect_uri")+"?"+back.Encode())
	})
	mcptest.WantError(t, err, "the authorization server refused: access_denied")
	if got := a.requests(); len(got) > 0 {
		t.Errorf("posted %v", got)
	}
}

// TestLoginWithoutRefreshTokenEnds with its access token, and nothing is asked for then.
func TestLoginWithoutRefreshTokenEnds(t *testing.T) {
	a := newAuthority(t)
	a.answers(200, `{"access_token":"only","token_type":"Bearer","expires_in":3600}`)
	s, _ := a.loggedIn(t)
	if got := tokenOf(t, s, ""); got != "only" {
		t.Errorf("got %q", got)
	}
	_, err := s.Token(t.Context(), "only")
	mcptest.WantError(t, err, "the login has ended", "toolcell servers login fake")
	if n := len(a.requests()); n != 1 {
		t.Errorf("%d requests for tokens", n)
	}
}

// TestUserStaysLoggedIn where the authorization server has a scope for that. A machine needs
// none, and an entry says all that it wants.
func TestUserStaysLoggedIn(t *testing.T) {
	for name, tt := range map[string]struct {
		oauth config.OAuth
		want  string
	}{
		"a user":           {config.OAuth{}, "tools offline_access"},
		"a machine":        {config.OAuth{ClientID: "bot", ClientSecret: "bot-s3cret", Machine: true}, "tools"},
		"an entry's scope": {config.OAuth{Scopes: []string{"read"}}, "read"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.oauth = &tt.oauth
			a.Metadata = func(m map[string]any) { m["scopes_supported"] = []string{"tools", "more", "offline_access"} }
			a.loggedIn(t)
			a.Lock()
			defer a.Unlock()
			got := a.Forms[0].Get("scope")
			if !tt.oauth.Machine {
				got = a.Queries[0].Get("scope")
			}
			if got != tt.want {
				t.Errorf("asked for %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLoginAsksForTheScopesOfItsChallenge, and so does the next.
func TestLoginAsksForTheScopesOfItsChallenge(t *testing.T) {
	a := newAuthority(t)
	s := a.open(t.TempDir())
	answer := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {`Bearer scope="basic"`}}, Body: http.NoBody}
	if err := s.LogIn(t.Context(), answer, "", browser(t)); err != nil {
		t.Fatal(err)
	}
	if got := a.asked(); !slices.Equal(got, []string{"basic"}) {
		t.Errorf("asked for %q", got)
	}
	a.mustLogIn(t, s) // its challenge names no scope
	if got := a.asked(); !slices.Equal(got, []string{"basic"}) {
		t.Errorf("asked for %q after a challenge without scopes", got)
	}
}
