package mcpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// maxErrorText is how many bytes of an error are passed on.
const maxErrorText = 64 << 10

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

// WithoutOutput returns an error of a server without the end of what the server
// wrote to stderr, which may be anything, also the user's data, and without names that it chose:
// only who may call the server, and the user, may see that.
func WithoutOutput(err error) error { return stdio.WithoutOutput(err) }

// ShortOutput returns an error of a server with the one line of its stderr that
// gives the reason: a traceback takes many tokens of a model.
func ShortOutput(err error) error { return stdio.ShortOutput(err) }

// Reason returns an error of a server with the one line of its stderr that gives the
// reason, and all the lines that it has of that, if there are several.
func Reason(err error) (lines []string, reason error) { return stdio.Reason(err) }

// SaidByServer reports whether an error has words of a server: what it wrote to stderr, an
// error that it answered with, or names in an explanation.
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
