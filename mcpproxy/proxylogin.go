package mcpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
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
	if err := u.logIn(ctx, p.options.ClientName, show); err != nil {
		return fmt.Errorf("logging in to server %q: %w", s.Name, u.secrets.Error(err))
	}
	return nil
}

// Logout forgets the login of a server, and reports whether there was one.
func (p *Proxy) Logout(server string) (was bool, err error) {
	u, err := p.upstream(server)
	if err != nil || u.login == nil {
		return false, err
	}
	if was, err = u.login.Remove(context.Background()); err != nil {
		return was, fmt.Errorf("forgetting the login of server %q: %w", u.server.Name, err)
	}
	return was, nil
}

// logIn lets the user log in to the server.
func (u *upstream) logIn(ctx context.Context, clientName string, show func(string)) error {
	challenge, err := remote.Challenge(ctx, u.server) //nolint:bodyclose // its body is read and closed
	if err != nil {
		return err
	}
	return u.login.LogIn(ctx, challenge, clientName, show)
}
