package mcpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// An Elicitation is what a server asks during a call (MCP specification, Elicitation).
// Its texts are cleaned, bounded and without the secrets of the server's entry.
type Elicitation = elicitation.Request

// An ElicitationReply is the answer to one: accept, decline or cancel, and what was
// entered. It goes to the server only if it fits the form.
type ElicitationReply = elicitation.Reply

// ElicitCapabilities are the ways in which a client can ask its user: servers are told
// of these and of no others.
type ElicitCapabilities = elicitation.Capabilities

// SetElicits says which ways of asking the client has, before calls are made for it.
// Servers of before 2026-07-28 learn of them once, at the beginning of a session. One
// that was told otherwise is therefore connected anew by the next call, unless calls
// are in flight: those, and the ones that join them, have what both the session and
// Want.Can allow. Later servers are told with each call.
func (p *Proxy) SetElicits(can ElicitCapabilities) {
	can.ByRequest = can.ByRequest && can.Any()
	p.elicits.Store(&can)
}

// elicitsNow returns what SetElicits set last.
func (p *Proxy) elicitsNow() ElicitCapabilities {
	if can := p.elicits.Load(); can != nil {
		return *can
	}
	return ElicitCapabilities{}
}

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

// WithoutOutput returns an error of a server without the end of what the server
// wrote to stderr, which may be anything, also the user's data: only who may call
// the server, and the user, may see that.
func WithoutOutput(err error) error { return stdio.WithoutOutput(err) }

// ShortOutput returns an error of a server with the one line of its stderr that
// gives the reason: a traceback takes many tokens of a model.
func ShortOutput(err error) error { return stdio.ShortOutput(err) }

// Reason returns an error of a server with the one line of its stderr that gives the
// reason, and all the lines that it has of that, if there are several.
func Reason(err error) (lines []string, reason error) { return stdio.Reason(err) }

// SaidByServer reports whether an error has words of a server: what it wrote to stderr, or
// an error that it answered with.
func SaidByServer(err error) bool {
	var failed *remote.Error
	var refused *jsonrpc.Error
	var answered *RemoteError
	return stdio.HasOutput(err) || errors.As(err, &failed) || errors.As(err, &refused) || errors.As(err, &answered)
}

// RemoteError is a JSON-RPC error that a server gave instead of a result.
type RemoteError struct {
	Code    int64
	Message string
}

func (e *RemoteError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server gave error %d", e.Code)
	}
	return e.Message
}
