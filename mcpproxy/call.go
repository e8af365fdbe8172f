package mcpproxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

const maxErrorText = 64 << 10

// ErrCallLost is in the error of a call whose server ended before it answered.
// Whether the call took effect is not known, so it is never made again by itself.
var ErrCallLost = errors.New("the call is lost and may have taken effect; it was not repeated")

// A CallRequest is one call of a tool.
type CallRequest struct {
	Server, Tool string          // names or aliases
	Arguments    json.RawMessage // a JSON object; none is the empty one
	// Progress is called with what the server reports while it works on the call;
	// total is 0 if it is not known. It may be nil.
	Progress func(done, total float64, text string)
	Run      *policy.Run          // whose policy and limits the call is under; nil may call everything
	Sent     func(t catalog.Tool) // is called just before the call goes out; may be nil
}

// A CallResult is what a tool answered.
type CallResult struct {
	JSON    json.RawMessage // the CallToolResult as the server wrote it
	IsError bool            // it says that the tool failed, which is no error of the call
}

// Call calls a tool.
func (p *Proxy) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	args, err := checkArguments(r.Arguments)
	if err != nil {
		return CallResult{}, fmt.Errorf("calling tool %q of server %q: %w", r.Tool, r.Server, err)
	}
	return with(p, r.Server, func(u *upstream) (CallResult, error) { return p.callOf(ctx, u, r, args) })
}

func (p *Proxy) callOf(ctx context.Context, u *upstream, r CallRequest, args json.RawMessage) (CallResult, error) {
	if err := r.Run.ServerDenied(policyNames(u.server)); err != nil {
		return CallResult{}, err
	}
	if limit := cmp.Or(u.server.CallTimeout, p.options.CallTimeout); limit > 0 {
		cause := fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
	}
	if err := u.turns.Acquire(ctx, 1); err != nil {
		return CallResult{}, fmt.Errorf("waiting for other calls of server %q to end: %w", u.server.Name, context.Cause(ctx))
	}
	defer u.turns.Release(1)
	return u.call(ctx, r, args)
}

func (u *upstream) call(ctx context.Context, r CallRequest, args json.RawMessage) (CallResult, error) {
	s, release, err := u.acquire(ctx)
	if err != nil {
		return CallResult{}, err
	}
	defer release()
	t, err := u.resolve(ctx, s, r.Tool)
	if err != nil {
		return CallResult{}, err
	}
	if err := r.authorize(u.server, t); err != nil {
		return CallResult{}, err
	}
	res, err := s.Request(ctx, transport.MethodCallTool, &transport.Params{Name: t.Name, Arguments: args, Schema: t.InputSchema, Progress: r.Progress})
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
		if res.Result, err = u.secrets.JSON(res.Result); err != nil {
			return CallResult{}, fmt.Errorf("calling tool %q of server %q: the tool failed, with a result that is left out: %w", t.Name, u.server.Name, err)
		}
	}
	return CallResult{res.Result, res.IsError}, nil
}

// authorize asks the policy whether the call may be made, and reports to Sent
// that it goes out.
func (r CallRequest) authorize(s config.Server, t catalog.Tool) error {
	if err := r.Run.Authorize(policyNames(s), policy.Tool{Name: t.Name, Alias: t.Alias, ReadOnly: t.ReadOnly()}); err != nil {
		return err
	}
	if r.Sent != nil {
		r.Sent(t)
	}
	return nil
}

// resolve finds the tool. Before it gives up it asks the server again: some
// change their tools without saying so.
func (u *upstream) resolve(ctx context.Context, s *transport.Session, tool string) (catalog.Tool, error) {
	list, fresh, err := u.currentTools(ctx, s)
	if err != nil {
		return catalog.Tool{}, err
	}
	t, ok := list.Find(tool)
	if !ok && !fresh {
		u.record.Outdated()
		if list, err = u.list(ctx, s); err != nil {
			return catalog.Tool{}, err
		}
		t, ok = list.Find(tool)
	}
	if !ok {
		return catalog.Tool{}, list.Missing(u.server.Name, tool)
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
	var wireErr *jsonrpc.Error
	if errors.As(err, &wireErr) {
		return fmt.Errorf("%s: %w", what, &RemoteError{Code: wireErr.Code, Message: text.Clip(u.secrets.Text(wireErr.Message), maxErrorText)})
	}
	var failed *remote.Error
	if errors.As(err, &failed) && !failed.Expired {
		if effect != nil && failed.Lost {
			return fmt.Errorf("%s: %w: %w", what, effect, failed)
		}
		return fmt.Errorf("%s: %w", what, failed)
	}
	if failed == nil && !transport.IsLost(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	how := "the server " + u.discard(s)
	var long *message.TooLongError
	if errors.As(err, &long) {
		how = "the server " + long.Error()
	}
	if effect == nil {
		return fmt.Errorf("%s: %s", what, how)
	}
	return fmt.Errorf("%s: %w: %s", what, effect, how)
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

func checkArguments(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || rawjson.IsNull(args) {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return args, nil
}

// policyNames is a server as policies know it.
func policyNames(s config.Server) policy.Server { return policy.Server{Name: s.Name, Alias: s.Alias} }
