// Package login logs the user in to remote MCP servers, as the MCP specification
// has it, and keeps the tokens.
//
// A Store has the login of one server, in a file that other processes use too. It renews
// tokens before they end, and each refresh token is used once among all of them. LogIn
// opens a port of this host for the browser to come back to, accepts an answer only with
// the state of this login, and sends secrets only to the authorization server. A client
// that logs in as itself needs no browser, and gets its tokens when they are first
// needed.
package login

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/oauth2"
)

// LogIn lets the user log in, and keeps the tokens. answer is the server's response to a
// request without a token. A client is registered under a name, and show is called with the
// address that the user opens in a browser. LogIn returns when the browser has come back to a port of this
// host, or ctx ends.
func (s *Store) LogIn(ctx context.Context, answer *http.Response, clientName string, show func(address string)) error {
	before := s.current(ctx)
	wanted := readChallenge(answer.Header)
	found, err := discover(ctx, s.client, s.url, wanted.metadataOr(before.Challenged))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusUnauthorized && !found.published && before.URL == "" {
		return errors.New("the server does not ask for a login")
	}
	l := s.newLogin(before, found, wanted)
	if s.entry.Machine {
		release, err := s.hold(ctx)
		if err != nil {
			return err
		}
		defer release()
		if s.load() != nil {
			s.kept = nil
		}
		return s.acquire(ctx, l, found)
	}
	if !slices.Contains(found.server.CodeChallengeMethodsSupported, "S256") { // "plain" protects nothing
		return errors.New("the authorization server does not implement PKCE with S256, without which a login is not safe")
	}
	back, err := newLoopback(s.entry.RedirectURL)
	if err != nil {
		return err
	}
	defer back.close()
	who, err := s.chooseClient(ctx, found, clientName, back.url)
	if err != nil {
		return err
	}
	if err := s.checkIssuer(before, found, who); err != nil {
		return err
	}
	l.client = who
	code, err := authorize(ctx, back, found, l, show)
	if err != nil {
		return err
	}
	if l.Token, err = s.requestToken(ctx, l, code); err != nil {
		return fmt.Errorf("exchanging the code for a token: %w", err)
	}
	release, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if s.load() == nil { // what other processes missed while the user was in the browser
		l.Missing = union(l.Missing, s.kept.copy().Missing)
	}
	return s.write(l)
}

// authorize sends the user's browser to the authorization server, and returns the code that
// it brings back, as the form to post for a token.
func authorize(ctx context.Context, back *loopback, found *service, l *login, show func(string)) (url.Values, error) {
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	config := oauth2.Config{
		ClientID: l.ClientID, RedirectURL: back.url, Scopes: l.Scopes, Endpoint: oauth2.Endpoint{AuthURL: found.server.AuthorizationEndpoint},
	}
	if err := checkAuthorizationEndpoint(found.server.AuthorizationEndpoint); err != nil {
		return nil, err
	}
	address := config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", l.Resource))
	back.serve(state)
	show(address)
	got, err := back.wait(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207: else another authorization server could have the code sent to this one,
	// or this one's to it. Issuers are compared as they are written.
	switch {
	case got.issuer == "" && found.server.AuthorizationResponseIssParameterSupported:
		return nil, errors.New("the answer of the authorization server does not say who it is of (iss), which it promises to")
	case got.issuer != "" && got.issuer != found.server.Issuer:
		return nil, fmt.Errorf("the answer is of the authorization server %q, which does not match expected issuer %q",
			text.Printable(got.issuer, 200), text.Printable(found.server.Issuer, 200))
	}
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {got.code}, "redirect_uri": {back.url}, "code_verifier": {verifier},
	}, nil
}

// checkAuthorizationEndpoint refuses an address that already has parameters of ours: readers
// differ in which of two counts.
func checkAuthorizationEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || checkAddress(address) != nil {
		return errors.New("the authorization server names no address to log in at")
	}
	for _, name := range []string{"state", "redirect_uri", "client_id", "scope", "resource", "response_type", "code_challenge", "code_challenge_method"} {
		if u.Query().Has(name) {
			return fmt.Errorf("the authorization server's address to log in at has the parameter %q, which is for the client to set", name)
		}
	}
	return nil
}

// newLogin is the login to ask for: the scopes are those of the entry, else those that
// the server challenged for, else all that it has, as the specification's Scope
// Selection Strategy has it. What the server missed since is added, and what the last
// login asked for, so that no scope is lost to another (Step-Up Authorization Flow).
func (s *Store) newLogin(before *login, found *service, wanted challenge) *login {
	l := &login{
		URL: s.url, Issuer: found.server.Issuer, Resource: found.resource, TokenURL: found.server.TokenEndpoint,
		Challenged: before.Challenged, Missing: before.Missing,
	}
	if wanted.Scopes != nil || wanted.Metadata != "" {
		l.Challenged = wanted.after(before.Challenged)
	}
	if len(s.entry.Scopes) > 0 {
		l.Scopes = union(s.entry.Scopes, l.Missing)
		return l
	}
	base := found.scopes
	if l.Challenged != nil && l.Challenged.Scopes != nil {
		base = l.Challenged.Scopes
	}
	l.Scopes = union(base, before.Scopes, l.Missing)
	// Without offline_access some give no refresh token. It is the user who stays logged
	// in by it: a client that logs in as itself has no use for it.
	if !s.entry.Machine && slices.Contains(found.server.ScopesSupported, "offline_access") {
		l.Scopes = union(l.Scopes, []string{"offline_access"})
	}
	return l
}

// checkIssuer refuses to send the credentials of the entry to another authorization
// server than last time: the server says which one it is, and could have them sent to
// itself.
func (s *Store) checkIssuer(before *login, found *service, who client) error {
	ofEntry := s.entry.ClientID != "" && who.ClientID == s.entry.ClientID
	if !ofEntry || s.entry.Issuer != "" || before.Issuer == "" || before.ClientID != who.ClientID || before.Issuer == found.server.Issuer {
		return nil
	}
	return fmt.Errorf(`the server now names the authorization server %q, and the client of the entry was used with %q; `+
		`if that is right, write the new one as "issuer" into "oauth" of the entry`, text.Printable(found.server.Issuer, 200), before.Issuer)
}
