package login

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func tokenOf(t *testing.T, s *Store, rejected string) string {
	t.Helper()
	token, err := s.Token(t.Context(), rejected)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestLoginIsKeptForOtherProcesses(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	other := a.open(dir)
	if tokenOf(t, s, "") != "access-token-1" || tokenOf(t, other, "") != "access-token-1" {
		t.Error("the token of the login is not there")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("kept in %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("its file has the mode %v, %v", st.Mode(), err)
	}
	if got := NewStore(config.Server{Name: "another", URL: "https://other.example/mcp"}, dir, other.secrets); tokenOf(t, got, "") != "" {
		t.Error("another server gets the token")
	}
	if was, err := other.Remove(t.Context()); err != nil || !was {
		t.Errorf("Remove: %v, %v", was, err)
	}
	if was, err := s.Remove(t.Context()); err != nil || was {
		t.Errorf("Remove once more: %v, %v", was, err)
	}
	if tokenOf(t, s, "") != "" {
		t.Error("a process still has the token that was removed")
	}
	_, err := s.Token(t.Context(), "access-token-1")
	mcptest.WantError(t, err, "needs a login", "toolcell servers login fake")
}

func TestNothingIsKeptWithoutFolder(t *testing.T) {
	a := newAuthority(t)
	s := a.open("")
	a.mustLogIn(t, s)
	if tokenOf(t, s, "") != "" {
		t.Error("there is a token")
	}
	if was, err := s.Remove(t.Context()); was || err != nil {
		t.Errorf("Remove: %v, %v", was, err)
	}
}

func TestUnreadableLoginIsReported(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	for _, body := range []string{
		"", "{", `{"url":"` + s.url + `"}`, `{"url":"https://evil.example","token":{"access_token":"t"}}`,
		`{"url":"` + s.url + `","token":{"access_token":"t"},"scopes":7}`,
	} {
		if err := os.WriteFile(s.path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := a.open(filepath.Dir(s.path)).Token(t.Context(), "")
		mcptest.WantError(t, err, "cannot be read", "toolcell servers login fake")
	}
}

// TestOneRenewalServesAllProcesses: the refresh token is good for one.
func TestOneRenewalServesAllProcesses(t *testing.T) {
	a := newAuthority(t)
	a.Life = time.Second // the library takes a token for expired before its end
	_, dir := a.loggedIn(t)
	a.Lock()
	a.Life = time.Hour
	a.Unlock()
	var all sync.WaitGroup
	for range 4 {
		s := a.open(dir)
		for range 3 {
			all.Go(func() {
				if token, err := s.Token(t.Context(), ""); err != nil || token != "access-token-2" {
					t.Errorf("got %q, %v", token, err)
				}
			})
		}
	}
	all.Wait()
	if n := a.Renewals; n != 1 {
		t.Errorf("renewed %d times", n)
	}
}

func TestRejectedTokenIsRenewedOnce(t *testing.T) {
	a := newAuthority(t)
	s, dir := a.loggedIn(t)
	other := a.open(dir)
	if got := tokenOf(t, s, "access-token-1"); got != "access-token-2" {
		t.Errorf("got %q", got)
	}
	if got := tokenOf(t, other, "access-token-1"); got != "access-token-2" {
		t.Errorf("the other process got %q", got)
	}
	if n := a.Renewals; n != 1 {
		t.Errorf("renewed %d times", n)
	}
}

// TestRenewalOutlivesItsCall, or its refresh token would be used and the new one lost.
func TestRenewalOutlivesItsCall(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	a.Lock() // the authority does not answer yet
	time.AfterFunc(50*time.Millisecond, func() { cancel(); a.Unlock() })
	if token, err := s.Token(ctx, "access-token-1"); err != nil || token != "access-token-2" {
		t.Errorf("got %q, %v", token, err)
	}
	if _, err := os.Stat(s.path); err != nil {
		t.Error(err)
	}
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if _, err := s.Token(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is over waits for its turn: %v", err)
	}
}

func TestFailedRenewalsSayWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   []string
	}{
		"withdrawn":     {400, `{"error":"invalid_grant"}`, []string{"the login has ended", "toolcell servers login fake"}},
		"unknown to it": {401, `{"error":"invalid_client"}`, []string{"the login has ended", "toolcell servers login fake"}},
		"out of order":  {500, `<html><title>Down for repairs</title>refresh-token-1</html>`, []string{"renewing the login", "500", "Down for repairs"}},
		"a secret back": {503, `cannot take refresh-token-1`, []string{"503", "cannot take [token]"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			s, _ := a.loggedIn(t)
			a.Lock()
			a.status, a.failure = tt.status, tt.body
			a.Unlock()
			_, err := s.Token(t.Context(), "access-token-1")
			mcptest.WantError(t, err, tt.want...)
			if strings.Contains(err.Error(), "refresh-token-1") {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

// TestSecretsAreNotRedirected: a refresh token goes to the authorization server alone.
func TestSecretsAreNotRedirected(t *testing.T) {
	a, thief := newAuthority(t), newAuthority(t)
	s, _ := a.loggedIn(t)
	a.Lock()
	a.status = http.StatusTemporaryRedirect
	a.Unlock()
	s.client.Transport = redirecting{thief.URL + "/token"}
	if token, err := s.Token(t.Context(), "access-token-1"); err == nil {
		t.Errorf("got %q", token)
	}
	thief.Lock()
	defer thief.Unlock()
	if len(thief.Forms) > 0 {
		t.Errorf("another host got %v", thief.Forms)
	}
}

// redirecting adds the address to redirects.
type redirecting struct{ to string }

func (r redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTemporaryRedirect {
		resp.Header.Set("Location", r.to)
	}
	return resp, err
}
