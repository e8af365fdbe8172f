package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

const renewWithin = 15 * time.Second

// Token returns the access token to send, or "" if there is none to be had without a
// challenge. A token that the server rejected, or that has come to its end, is renewed
// first.
func (s *Store) Token(ctx context.Context, rejected string) (string, error) {
	if s.path == "" && !s.entry.Machine {
		return "", s.missing(rejected)
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := s.load(); err != nil {
		return "", err
	}
	switch {
	case s.usable(rejected):
		return s.kept.Token.AccessToken, nil
	case s.entry.Machine && (!s.kept.loggedIn() || s.kept.ClientID != s.entry.ClientID || rejected != ""):
		return "", nil // Refused gets one, when the server has said for what
	case !s.kept.loggedIn():
		return "", s.missing(rejected)
	}
	// A renewal is finished even if the call ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
	defer cancel()
	if err := s.renew(ctx, rejected); err != nil {
		return "", err
	}
	return s.kept.Token.AccessToken, nil
}

// missing is the error for a server without a login, which is none as long as
// the server did not ask for one.
func (s *Store) missing(rejected string) error {
	if rejected == "" {
		return nil
	}
	return errors.New(remote.LoginNeeded(s.name))
}

func (s *Store) usable(rejected string) bool {
	return s.kept.loggedIn() && s.kept.Token.Valid() && s.kept.Token.AccessToken != rejected &&
		(!s.entry.Machine || s.kept.ClientID == s.entry.ClientID)
}

// renew gets a new token for the refresh token, unless another process has
// done so in the meantime.
func (s *Store) renew(ctx context.Context, rejected string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("renewing the login of server %q: %w", s.name, err)
	}
	defer unlock()
	if err := s.load(); err != nil {
		return err
	}
	if s.usable(rejected) {
		return nil
	}
	ended := fmt.Errorf("the login has ended; in a terminal: toolcell servers login %s", text.ShellWord(s.name))
	fresh := s.kept.copy()
	grant := asClient(fresh.Scopes)
	if !s.entry.Machine {
		if !s.kept.loggedIn() || s.kept.Token.RefreshToken == "" {
			return ended
		}
		grant = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.kept.Token.RefreshToken}}
	}
	fresh.Token, err = s.requestToken(ctx, fresh, grant)
	if refused := new(refusedGrant); errors.As(err, &refused) && !s.entry.Machine {
		switch refused.code {
		case "invalid_grant", "invalid_client", "unauthorized_client":
			return ended
		}
	}
	if err != nil {
		return fmt.Errorf("renewing the login of server %q: %w", s.name, err)
	}
	return s.write(fresh)
}

// asClient is the form with which a client asks for a token of its own.
func asClient(scopes []string) url.Values {
	grant := url.Values{"grant_type": {"client_credentials"}}
	if len(scopes) > 0 {
		grant.Set("scope", strings.Join(scopes, " "))
	}
	return grant
}

// Refused handles a 401 or 403 to a request with a token, or without one. It reports whether
// there is another token to try, and keeps the missing scopes for the next login. An error
// says what the user can do.
func (s *Store) Refused(ctx context.Context, token string, answer *http.Response) (again bool, err error) {
	wanted := readChallenge(answer.Header)
	denied := answer.StatusCode == http.StatusForbidden
	if denied && !wanted.insufficient || !denied && !s.entry.Machine && wanted.Scopes == nil && wanted.Metadata == "" {
		return false, nil
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
	defer cancel()
	unlock, err := s.lock(ctx)
	if err == nil {
		defer unlock()
		err = s.load()
	}
	if err == nil && s.usable(token) {
		return true, nil // another call, or process, was first
	}
	before := s.kept
	if err == nil {
		err = s.note(denied, wanted)
	}
	switch {
	case s.entry.Machine && err == nil:
		return s.acquireWanted(ctx, before, denied, wanted)
	case s.entry.Machine:
		return false, fmt.Errorf("logging in to server %q: %w", s.name, err)
	case denied && err != nil:
		return false, fmt.Errorf("%w (what it wants could not be kept: %w)", s.insufficient(before, wanted.Scopes), err)
	case denied:
		return false, s.insufficient(before, wanted.Scopes)
	}
	return false, nil // the user reads that a login is needed, which finds out the rest
}

// acquireWanted gets a client that logs in as itself the token that the server wants.
func (s *Store) acquireWanted(ctx context.Context, before *login, denied bool, wanted challenge) (bool, error) {
	if denied && (len(wanted.Scopes) == 0 || before.loggedIn() && containsAll(before.Scopes, wanted.Scopes)) {
		return false, fmt.Errorf("the server does not allow this to the client of the entry%s; the service has to allow it to the client", naming(wanted.Scopes))
	}
	found, err := discover(ctx, s.client, s.url, wanted.metadataOr(s.kept.copy().Challenged))
	if err == nil {
		if denied { // its scopes are in Missing
			wanted.Scopes = nil
		}
		err = s.acquire(ctx, s.newLogin(s.kept.copy(), found, wanted), found)
	}
	if err != nil {
		return false, fmt.Errorf("logging in to server %q: %w", s.name, err)
	}
	return true, nil
}

// note keeps what the server asked for.
func (s *Store) note(denied bool, wanted challenge) error {
	l := s.kept.copy()
	l.URL = s.url
	switch {
	case denied:
		l.Missing = union(l.Missing, wanted.Scopes)
	case wanted.Scopes != nil || wanted.Metadata != "":
		l.Challenged = wanted.after(l.Challenged)
	}
	if l.asksAs(s.kept.copy()) {
		return nil
	}
	return s.write(l)
}

// insufficient returns the error of a login without some scopes, with a cure.
func (s *Store) insufficient(l *login, scopes []string) error {
	if l.loggedIn() && len(scopes) > 0 && containsAll(l.Scopes, scopes) {
		return fmt.Errorf("the login does not allow this%s, although it asked for that; the service has to allow it to your account", naming(scopes))
	}
	return fmt.Errorf("the login does not allow this%s; to ask for more, in a terminal: toolcell servers login %s", naming(scopes), text.ShellWord(s.name))
}

// naming names the scopes that the server wants, within an error.
func naming(scopes []string) string {
	switch len(scopes) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(": the server wants the scope %q", scopes[0])
	}
	return ": the server wants the scopes " + text.QuoteList(scopes, 10)
}

// acquire gets the token of a client that logs in as itself, and keeps it. The caller
// has its turn, and the file's lock.
func (s *Store) acquire(ctx context.Context, l *login, found *service) error {
	who, err := s.entryClient(found)
	if err == nil {
		err = s.checkIssuer(s.kept.copy(), found, who)
	}
	if err != nil {
		return err
	}
	l.client = who
	if l.Token, err = s.requestToken(ctx, l, asClient(l.Scopes)); err != nil {
		return fmt.Errorf("asking for a token as the client of the entry: %w", err)
	}
	return s.write(l)
}
