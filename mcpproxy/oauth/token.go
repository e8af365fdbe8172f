package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/statefile"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"golang.org/x/oauth2"
)

const (
	maxRedirects = 5
	renewWithin  = 15 * time.Second
)

// oauthClient talks to authorization servers. What is posted to them is secret
// and goes where it was meant to go only.
func oauthClient() *http.Client {
	return &http.Client{
		Timeout: renewWithin,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet || len(via) > maxRedirects {
				return errors.New("the authorization server redirects a request that must not be redirected")
			}
			return nil
		},
	}
}

// Token returns the access token to send, or "" if there is no login. A token
// that the server rejected, or that has come to its end, is renewed first.
func (s *Store) Token(ctx context.Context, rejected string) (string, error) {
	if s.path == "" {
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
	if s.kept == nil {
		return "", s.missing(rejected)
	}
	if s.usable(rejected) {
		return s.kept.Token.AccessToken, nil
	}
	// A renewal that was begun is finished, whatever becomes of the call.
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
	return s.kept != nil && s.kept.Token.Valid() && s.kept.Token.AccessToken != rejected
}

// renew gets a new token for the refresh token, unless another process has
// done so in the meantime.
func (s *Store) renew(ctx context.Context, rejected string) error {
	unlock, err := statefile.Lock(ctx, s.path+".lock")
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
	if s.kept == nil || s.kept.Token.RefreshToken == "" {
		return ended
	}
	config := oauth2.Config{
		ClientID: s.kept.ClientID, ClientSecret: s.kept.ClientSecret, Scopes: s.kept.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: s.kept.TokenURL, AuthStyle: s.kept.AuthStyle},
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.client)
	fresh, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: s.kept.Token.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case "invalid_grant", "invalid_client", "unauthorized_client":
			return ended
		}
		return fmt.Errorf("renewing the login of server %q: the authorization server answered %s: %s", s.name,
			refused.Response.Status, s.secrets.Text(text.Excerpt(refused.Body)))
	}
	if err != nil {
		return fmt.Errorf("renewing the login of server %q: %s", s.name, s.secrets.Text(remote.PlainText(err)))
	}
	kept := *s.kept
	kept.Token = fresh
	return s.write(&kept)
}
