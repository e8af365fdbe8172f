package login

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

const writeIsMissing = `Bearer error="insufficient_scope", scope="write"`

// TestFolderThatIsAFileIsReported by all that needs it, and nothing waits for it afterwards.
func TestFolderThatIsAFileIsReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logins")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, m := newAuthority(t), machineAuthority(t)
	s := a.open(dir)
	_, err := s.Token(t.Context(), "")
	mcptest.WantError(t, err, `reading the login of server "fake"`, "not a directory")
	_, err = s.Remove(t.Context())
	mcptest.WantError(t, err, "not a directory")
	_, err = refuse(t, s, "", 403, writeIsMissing)
	mcptest.WantError(t, err, `the scope "write"`, "could not be kept", "not a directory")
	_, err = refuse(t, m.open(dir), "", 401, "Bearer")
	mcptest.WantError(t, err, `logging in to server "fake"`, "not a directory")
	mcptest.WantError(t, a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t)), "not a directory")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.logIn(ctx, s, http.StatusUnauthorized, browser(t)); err != nil {
		t.Errorf("once the file is gone: %v", err)
	}
}

// TestNoTokenIsRenewedWithoutTheLock: another process may be using the refresh token.
func TestNoTokenIsRenewedWithoutTheLock(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	if err := os.Remove(s.path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path+".lock", 0o700); err != nil { // root may open every file
		t.Fatal(err)
	}
	_, err := s.Token(t.Context(), "access-token-1")
	mcptest.WantError(t, err, `renewing the login of server "fake"`, "is a directory")
	if n := len(a.requests()); n != 1 {
		t.Errorf("%d requests for tokens", n)
	}
	if was, err := s.Remove(t.Context()); was || err == nil {
		t.Errorf("Remove: %v, %v", was, err)
	}
	if got := tokenOf(t, s, ""); got != "access-token-1" {
		t.Errorf("got %q", got)
	}
}

// TestLoginThatCannotBeKeptIsAnError, as its refresh token is used by now.
func TestLoginThatCannotBeKeptIsAnError(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	if err := os.MkdirAll(filepath.Join(state.Unfinished(s.path), "in the way"), 0o700); err != nil { // root may write to every folder
		t.Fatal(err)
	}
	_, err := s.Token(t.Context(), "access-token-1")
	mcptest.WantError(t, err, `keeping the login of server "fake"`)
	err = a.logIn(t.Context(), s, http.StatusUnauthorized, browser(t))
	mcptest.WantError(t, err, `keeping the login of server "fake"`)
}

func TestFolderInPlaceOfALoginIsReported(t *testing.T) {
	s := newAuthority(t).open(t.TempDir())
	if err := os.Mkdir(s.path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Token(t.Context(), "")
	mcptest.WantError(t, err, `reading the login of server "fake"`, "is a directory")
}

// TestHugeLoginIsRemoved, and counts as one: it cannot be read.
func TestHugeLoginIsRemoved(t *testing.T) {
	s := newAuthority(t).open(t.TempDir())
	if err := os.WriteFile(s.path, []byte(strings.Repeat(" ", maxLoginFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if was, err := s.Remove(t.Context()); !was || err != nil {
		t.Errorf("Remove: %v, %v", was, err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestRenewalReadsTheLoginOnceMore when it has the lock: the refresh token that this process
// knows may have been used by the one that wrote the file since.
func TestRenewalReadsTheLoginOnceMore(t *testing.T) {
	a := newAuthority(t)
	s, _ := a.loggedIn(t)
	if err := os.WriteFile(s.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	mcptest.WantError(t, s.renew(t.Context(), "access-token-1"), "cannot be read")
	if n := len(a.requests()); n != 1 {
		t.Errorf("%d requests for tokens", n)
	}
}

func TestCallThatIsOverWaitsForNoTurn(t *testing.T) {
	s := newAuthority(t).open(t.TempDir())
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Www-Authenticate": {writeIsMissing}}, Body: http.NoBody}
	if again, err := s.Refused(ctx, "", answer); again || !errors.Is(err, context.Canceled) {
		t.Errorf("Refused: %v, %v", again, err)
	}
	if _, err := s.hold(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("hold: %v", err)
	}
}

// TestReadingALoginLeavesNoFileOpen: each request to the server looks at it.
func TestReadingALoginLeavesNoFileOpen(t *testing.T) {
	s, _ := newAuthority(t).loggedIn(t)
	tokenOf(t, s, "")
	if open := ostest.OpenFiles(t, s.path); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}
