package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	methodCallTool = "tools/call"
	maxErrorText   = 64 << 10
)

// ErrCallLost is in the error of a call whose server ended before it answered.
// Whether the call took effect is not known, so it is never made again by itself.
var ErrCallLost = errors.New("the call is lost and may have taken effect; it was not repeated")

// A CallRequest is one call of a tool.
type CallRequest struct {
	Server, Tool string          // names or aliases
	Arguments    json.RawMessage // a JSON object; none is the empty one
	// Progress is told what the server says of the call while it works on it;
	// total is 0 if it is not known. It may be nil.
	Progress func(done, total float64, text string)
	Run      *Run         // whose policy and limits the call is under; nil may call everything
	Sent     func(t Tool) // is told just before the call goes out; may be nil
}

// Call calls a tool and returns the CallToolResult as the server wrote it:
// isError is part of it and not an error here.
func (p *Proxy) Call(ctx context.Context, r CallRequest) (json.RawMessage, error) {
	args, err := checkArguments(r.Arguments)
	if err != nil {
		return nil, fmt.Errorf("calling tool %q of server %q: %w", r.Tool, r.Server, err)
	}
	u, err := p.upstream(r.Server)
	if err != nil {
		return nil, err
	}
	if err := r.Run.Barred(u.server); err != nil {
		return nil, err
	}
	if p.options.CallTimeout > 0 {
		cause := fmt.Errorf("no answer within %v: %w", p.options.CallTimeout, context.DeadlineExceeded)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.options.CallTimeout, cause)
		defer cancel()
	}
	return u.call(ctx, r, args)
}

func (u *upstream) call(ctx context.Context, r CallRequest, args json.RawMessage) (json.RawMessage, error) {
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t, err := u.resolve(ctx, s, r.Tool)
	if err != nil {
		return nil, err
	}
	if err := r.leave(u.server, t); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("calling tool %q of server %q", t.Name, u.server.Name)
	raw, err := s.request(ctx, methodCallTool, &rawParams{Name: t.Name, Arguments: args})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("%s: %w", what, cause)
		}
		return nil, u.lost(s, err, what, ErrCallLost)
	}
	if err := checkResult(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return raw, nil
}

// resolve finds the tool. Before it gives up it asks the server again: some
// change their tools without saying so.
func (u *upstream) resolve(ctx context.Context, s *session, tool string) (Tool, error) {
	list, fresh, err := u.current(ctx, s)
	if err != nil {
		return Tool{}, err
	}
	t, ok := list.find(tool)
	if !ok && !fresh {
		u.invalidate()
		if list, _, err = u.current(ctx, s); err != nil {
			return Tool{}, err
		}
		t, ok = list.find(tool)
	}
	if !ok {
		return Tool{}, noTool(u.server.Name, tool, list)
	}
	return t, nil
}

// lost puts an error of a request into words. If the connection broke, it sees
// the process off first, since how it ended is the news; effect is then what
// that means for the caller, or nil.
func (u *upstream) lost(s *session, err error, what string, effect error) error {
	var wireErr *jsonrpc.Error
	if errors.As(err, &wireErr) {
		return fmt.Errorf("%s: %w", what, &RemoteError{Code: wireErr.Code, Message: clip(wireErr.Message, maxErrorText)})
	}
	if !isLost(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if u.ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	how := "the server " + u.bury(s)
	if errors.Is(err, errMessageTooLong) {
		how = "the server " + errMessageTooLong.Error()
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
	if len(args) == 0 || isNull(args) {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return args, nil
}

// checkResult refuses what is no result to hand on. Under the 2026-07-28
// protocol a server may answer with questions to the user, whom a script
// cannot reach.
func checkResult(raw json.RawMessage) error {
	if t := bytes.TrimSpace(raw); len(t) == 0 || t[0] != '{' {
		return errors.New("the server's result is not an object")
	}
	if !bytes.Contains(raw, []byte("input_required")) {
		return nil // parsing many megabytes for one field takes its time
	}
	var res struct {
		ResultType string `json:"resultType"`
	}
	if err := json.Unmarshal(raw, &res); err == nil && res.ResultType == "input_required" {
		return errors.New("the tool asks the user for input, which is not supported inside run_python")
	}
	return nil
}
