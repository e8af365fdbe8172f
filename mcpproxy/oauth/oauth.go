// Package oauth logs the user in to remote MCP servers, as the MCP specification
// has it, and keeps the tokens.
//
// A Store has the login of one server, in a file that other processes use too. It
// renews tokens before they end, and each refresh token is used once among all of
// them. LogIn opens a port of this host for the browser to come back to, accepts an
// answer only with the state of this login, and sends what is secret to the
// authorization server alone.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Options say how to log in.
type Options struct {
	ClientID, ClientSecret string   // of a client that the service knows; without an id one is registered
	ClientName             string   // under which it is registered
	Scopes                 []string // what to ask for; what the server names if there are none
	// Show is called with the address that the user opens in a browser.
	Show func(address string)
}

// LogIn lets the user log in, and keeps the tokens. challenge is how the server
// answered a request without a token. It returns when the browser came back to a
// port of this host, or ctx ended.
func (s *Store) LogIn(ctx context.Context, challenge *http.Response, o Options) error {
	asked := challenge.StatusCode == http.StatusUnauthorized
	if !asked { // some ask only when a tool is called; what they publish tells
		challenge.StatusCode = http.StatusUnauthorized
	}

	back, err := newLoopback()
	if err != nil {
		return err
	}
	defer back.close()
	var got *login
	shown := false
	config := s.authorization(o, back.url)
	config.AuthorizationCodeFetcher = func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		shown = true
		return back.fetch(ctx, args.URL, o.Show)
	}
	config.NewTokenSource = func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
		got = &login{
			URL: s.url, ClientID: c.ClientID, ClientSecret: c.ClientSecret, AuthStyle: c.Endpoint.AuthStyle,
			TokenURL: c.Endpoint.TokenURL, Scopes: c.Scopes, Token: t,
		}
		return oauth2.StaticTokenSource(t), nil
	}
	flow, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	err = flow.Authorize(ctx, challenge.Request, challenge)
	if err != nil && !asked && !shown {
		return errors.New("the server does not ask for a login")
	}
	if err != nil {
		return explainLogin(err)
	}
	if got == nil {
		return errors.New("the authorization server gave no token")
	}
	return s.save(ctx, got)
}

// authorization says who asks for the login: the client of the options, or one that
// registers itself.
func (s *Store) authorization(o Options, redirect string) *auth.AuthorizationCodeHandlerConfig {
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: s.client,
	}
	if len(o.Scopes) > 0 {
		config.ScopeFilter = func([]string) []string { return slices.Clone(o.Scopes) }
	}
	if o.ClientID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID}
		if o.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
		return config
	}
	config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
		Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: o.ClientName, RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		},
	}
	return config
}

// explainLogin adds what the user can do about it.
func explainLogin(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "no configured client registration methods"),
		strings.Contains(text, "failed to register client"):
		return fmt.Errorf("%w; register a client with the service by hand, and write its client id into the entry", err)
	case strings.Contains(text, "does not implement PKCE"):
		return fmt.Errorf("%w, without which a login is not safe", err)
	}
	return err
}
