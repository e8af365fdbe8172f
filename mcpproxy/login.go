package mcpproxy

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"golang.org/x/oauth2"
)

// Login lets the user log in to a server, with OAuth as the MCP specification
// has it, and keeps the tokens in TokenDir. show gives the user the address to
// open in a browser; when that is done, the browser comes back to a port of
// this host. It needs a user, so nothing but a command for one may call it.
func (p *Proxy) Login(ctx context.Context, server string, show func(address string)) error {
	u, err := p.upstream(server)
	if err != nil {
		return err
	}
	s := u.server
	switch {
	case s.URL == "":
		return fmt.Errorf("server %q is a command and takes no login; what it needs is in its own documentation", s.Name)
	case u.login == nil:
		return fmt.Errorf("server %q has an Authorization header in %s, which is what it gets; take it out to log in instead", s.Name, s.Source)
	case p.options.TokenDir == "":
		return errors.New("there is no folder to keep logins in")
	}
	if err := u.logIn(ctx, show); err != nil {
		return fmt.Errorf("logging in to server %q: %w", s.Name, u.secrets.hideError(err))
	}
	return nil
}

// Logout forgets the login of a server, and reports whether there was one.
func (p *Proxy) Logout(server string) (was bool, err error) {
	u, err := p.upstream(server)
	if err != nil {
		return false, err
	}
	k := u.login
	if k == nil || k.path == "" {
		return false, nil
	}
	unlock, err := statefile.Lock(context.Background(), k.path+".lock")
	if err != nil {
		return false, fmt.Errorf("forgetting the login of server %q: %w", u.server.Name, err)
	}
	defer unlock()
	err = os.Remove(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("forgetting the login of server %q: %w", u.server.Name, err)
	}
	return true, nil
}

func (u *upstream) logIn(ctx context.Context, show func(string)) error {
	challenge, err := challenge(ctx, u.server)
	if err != nil {
		return err
	}
	asked := challenge.StatusCode == http.StatusUnauthorized
	if !asked { // some ask only when a tool is called; what they publish tells
		challenge.StatusCode = http.StatusUnauthorized
	}

	back, err := newLoopback()
	if err != nil {
		return err
	}
	defer back.close()
	keep := u.login
	var got *login
	shown := false
	config := u.oauthConfig(back.url)
	config.AuthorizationCodeFetcher = func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		shown = true
		return back.fetch(ctx, args.URL, show)
	}
	config.NewTokenSource = func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
		got = &login{
			URL: keep.url, ClientID: c.ClientID, ClientSecret: c.ClientSecret, AuthStyle: c.Endpoint.AuthStyle,
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
	return keep.replace(ctx, got)
}

// oauthConfig says who we are: the client of the entry, or one that registers
// itself.
func (u *upstream) oauthConfig(redirect string) *auth.AuthorizationCodeHandlerConfig {
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: u.login.client,
	}
	o := u.server.OAuth
	if o != nil && len(o.Scopes) > 0 {
		config.ScopeFilter = func([]string) []string { return slices.Clone(o.Scopes) }
	}
	if o != nil && o.ClientID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID}
		if o.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
		return config
	}
	config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
		Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: u.dialer.client.Name, RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
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

// loopback is the port of this host that the browser comes back to.
type loopback struct {
	url      string
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	state    string
	came     chan *auth.AuthorizationResult
	refused  chan error
}

func newLoopback() (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port for the browser to come back to: %w", err)
	}
	return &loopback{
		url: "http://" + l.Addr().String() + "/callback", listener: l, served: make(chan struct{}),
		came: make(chan *auth.AuthorizationResult, 1), refused: make(chan error, 1),
	}, nil
}

// fetch shows the address and waits for the browser.
func (b *loopback) fetch(ctx context.Context, address string, show func(string)) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the authorization server's address makes no sense: %w", err)
	}
	b.state = u.Query().Get("state")
	b.server = &http.Server{Handler: http.HandlerFunc(b.receive), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(b.listener)
	}()
	show(address)
	select {
	case got := <-b.came:
		return got, nil
	case err := <-b.refused:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	}
}

// receive takes what the browser brings. Any program of this host may knock
// here, so what does not know the state is turned away and ends nothing.
func (b *loopback) receive(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if req.URL.Path != "/callback" || req.Method != http.MethodGet {
		http.NotFound(w, req)
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This is not the answer to the login that goes on.", http.StatusBadRequest)
		return
	}
	if code := q.Get("error"); code != "" || q.Get("code") == "" {
		err := fmt.Errorf("the authorization server refused: %s", text.Printable(strings.TrimSpace(code+" "+q.Get("error_description")), maxExcerpt))
		select {
		case b.refused <- err:
		default:
		}
		fmt.Fprintln(w, "The login was refused. The terminal says why; you can close this page.")
		return
	}
	select {
	case b.came <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}:
	default:
	}
	fmt.Fprintln(w, "toolcell has what it needs. The terminal says whether the login worked; you can close this page.")
}

// close lets the page that is being answered get out, and ends the port.
func (b *loopback) close() {
	if b.server == nil {
		b.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		b.server.Close()
	}
	<-b.served
}
