package mcpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

// maxErrorText is how many bytes of an error are passed on.
const maxErrorText = 64 << 10

// resolve finds the tool in the kept list. A list that may be out of date is fetched again
// first if live is set, else in the background. Before resolve gives up it asks the server
// again: some change their tools without saying so.
func (u *upstream) resolve(ctx context.Context, s *transport.Session, tool string, live bool) (catalog.Tool, error) {
	list, outdated := u.record.Tools()
	kept := list != nil && !(outdated && live)
	if kept {
		if outdated {
			u.startListing(s)
		}
		if t, ok := list.Resolve(tool); ok {
			return t, nil
		}
		u.record.Outdated()
	}
	list, err := u.list(ctx, s)
	if err != nil {
		return catalog.Tool{}, err
	}
	if t, ok := list.Resolve(tool); ok {
		return t, nil
	}
	return catalog.Tool{}, u.missing(list, tool)
}

// explainError puts an error of a request into words. If the connection broke, it
// discards the session first, since how the server ended is the reason; effect is then
// what that means for the caller, or nil.
func (u *upstream) explainError(s *transport.Session, err error, what string, effect error) error {
	return u.secrets.Error(u.explain(s, err, what, effect))
}

func (u *upstream) explain(s *transport.Session, err error, what string, effect error) error {
	if u.proxy.ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	if asked, ok := errors.AsType[*askError](err); ok { // whatever it wraps is not about this server
		return fmt.Errorf("%s: %w", what, asked)
	}
	if wireErr, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("%s: %w", what, &RemoteError{Code: wireErr.Code, Message: text.Clip(u.secrets.Text(wireErr.Message), maxErrorText)})
	}
	failed, ok := errors.AsType[*remote.Error](err)
	if ok && !failed.Expired {
		if effect != nil && failed.Lost {
			return fmt.Errorf("%s: %w: %w", what, effect, failed)
		}
		return fmt.Errorf("%s: %w", what, failed)
	}
	if unread, ok := errors.AsType[*message.UnreadableError](err); ok && effect != nil {
		return fmt.Errorf("%s: %w: %w", what, effect, unread)
	}
	if !ok && !message.IsLost(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	how := u.discard(s)
	if long, ok := errors.AsType[*message.TooLongError](err); ok {
		how = long
	}
	if effect == nil {
		return fmt.Errorf("%s: the server %w", what, how)
	}
	return fmt.Errorf("%s: %w: the server %w", what, effect, how)
}

// explainReadError puts the error of a request that changes nothing into words.
func (u *upstream) explainReadError(ctx context.Context, s *transport.Session, err error, what string) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, cause)) {
		return fmt.Errorf("%s: %w", what, cause)
	}
	return u.explainError(s, err, what, nil)
}

// logIn lets the user log in to the server.
func (u *upstream) logIn(ctx context.Context, clientName string, show func(string)) error {
	challenge, err := remote.Challenge(ctx, u.server) //nolint:bodyclose // its body is read and closed
	if err != nil {
		return err
	}
	return u.login.LogIn(ctx, challenge, clientName, show)
}
