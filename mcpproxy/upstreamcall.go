package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/room"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/login"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

// maxErrorText is how many bytes of an error are passed on.
const maxErrorText = 64 << 10

// callInTurn makes one call when there are not too many of the server.
func (u *upstream) callInTurn(ctx context.Context, r CallRequest, args json.RawMessage) (CallResult, error) {
	if err := r.Run.ServerDenied(policyNames(u.server)); err != nil {
		return CallResult{}, err
	}
	ctx, left, cancel := elicitation.StartClock(ctx, u.callTimeout, noAnswer(u.callTimeout))
	defer cancel()
	if err := u.turns.Acquire(ctx, 1); err != nil {
		return CallResult{}, fmt.Errorf("waiting for other calls of server %q to end: %w", u.server.Name, context.Cause(ctx))
	}
	defer u.turns.Release(1)
	return u.call(ctx, r, args, left)
}

// call makes one call, on a session that is started if it must be.
func (u *upstream) call(ctx context.Context, r CallRequest, args json.RawMessage, left *elicitation.Clock) (CallResult, error) {
	left.Pause() // starting is not the call
	s, release, err := u.acquire(ctx)
	left.Resume()
	if err != nil {
		return CallResult{}, err
	}
	defer release()
	if err := u.awaitPins(ctx, s, r); err != nil {
		return CallResult{}, err
	}
	t, err := u.resolve(ctx, s, r.Tool)
	if err != nil {
		return CallResult{}, err
	}
	if err := r.authorize(ctx, u, u.trusted(t), args); err != nil {
		return CallResult{}, err
	}
	asked := newRelay(u, s, t.Name, asking{r.Elicits, r.Elicit}, left)
	res, err := asked.request(ctx, transport.MethodCallTool, &transport.Params{Name: t.Name, Arguments: args, Schema: t.InputSchema, Progress: r.Progress})
	if err != nil {
		what := fmt.Sprintf("calling tool %q of server %q", t.Name, u.server.Name)
		if cause := context.Cause(ctx); cause != nil {
			return CallResult{}, fmt.Errorf("%s: %w", what, cause)
		}
		return CallResult{}, u.explainError(s, err, what, ErrCallLost)
	}
	if err := res.Check(); err != nil {
		return CallResult{}, fmt.Errorf("calling tool %q of server %q: %w", t.Name, u.server.Name, err)
	}
	if res.IsError { // others are the data that the user asked for and stay as they are
		hide := func() (json.RawMessage, error) { return u.secrets.JSON(res.Result) }
		if res.Result, err = room.Decode(ctx, "hiding secrets", len(res.Result), room.Secrets, hide); err != nil {
			return CallResult{}, fmt.Errorf("calling tool %q of server %q: the tool failed, with a result that is left out: %w", t.Name, u.server.Name, err)
		}
	}
	return CallResult{res.Result, res.IsError}, nil
}

// awaitPins lists the tools of a server that was just started or has changed them, if it
// matters to the policy or the plan how a tool is defined now. Otherwise a call goes by
// what is known, and the server is asked beside it.
func (u *upstream) awaitPins(ctx context.Context, s *transport.Session, r CallRequest) error {
	if _, outdated := u.record.Tools(); !outdated || r.Plans == nil && !r.Run.GoesByDefinitions(policyNames(u.server)) {
		return nil
	}
	_, err := u.list(ctx, s)
	return err
}

// resolve finds the tool. Before it gives up it asks the server again: some
// change their tools without saying so.
func (u *upstream) resolve(ctx context.Context, s *transport.Session, tool string) (catalog.Tool, error) {
	list, fresh, err := u.currentTools(ctx, s)
	if err != nil {
		return catalog.Tool{}, err
	}
	t, ok := list.Resolve(tool)
	if !ok && !fresh {
		u.record.Outdated()
		if list, err = u.list(ctx, s); err != nil {
			return catalog.Tool{}, err
		}
		t, ok = list.Resolve(tool)
	}
	if !ok {
		return catalog.Tool{}, u.missing(list, tool)
	}
	return t, nil
}

// explainError puts an error of a request into words. If the connection broke, it
// discards the session first, since how the server ended is the reason; effect is then
// what that means for the caller, or nil.
func (u *upstream) explainError(s *transport.Session, err error, what string, effect error) error {
	return u.secrets.Error(u.explain(s, err, what, effect))
}

func (u *upstream) explain(s *transport.Session, err error, what string, effect error) error {
	if u.ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	if asked, ok := errors.AsType[*askError](err); ok { // whatever it wraps is not about this server
		return fmt.Errorf("%s: %w", what, asked)
	}
	if wireErr, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("%s: %w", what, &RemoteError{Code: wireErr.Code, Message: text.Clip(u.secrets.Text(wireErr.Message), maxErrorText)})
	}
	var failed *remote.Error
	if errors.As(err, &failed) && !failed.Expired {
		if effect != nil && failed.Lost {
			return fmt.Errorf("%s: %w: %w", what, effect, failed)
		}
		return fmt.Errorf("%s: %w", what, failed)
	}
	var unread *message.UnreadableError
	if errors.As(err, &unread) && effect != nil {
		return fmt.Errorf("%s: %w: %w", what, effect, unread)
	}
	if failed == nil && !transport.IsLost(err) {
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
	return u.login.LogIn(ctx, challenge, login.Options{ClientName: clientName, Show: show})
}
