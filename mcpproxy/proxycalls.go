package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/room"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

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
	Run      *policy.Run // whose policy and limits the call is under; nil allows nothing
	// Allowed reports whether the user has allowed what the policy wants to be asked
	// about; nil is nothing. Call returns an *policy.Ask that it does not allow, before
	// anything is sent and with nothing held. The caller asks, and calls again.
	Allowed func(*policy.Ask) bool
	// Check is called before that with the tool as it is now and the arguments as they
	// will be sent. It returns reasons why the user has to be asked about just this call,
	// or an error, with which Call fails before anything is sent. It may be nil.
	Check func(s config.Server, t catalog.Tool, args json.RawMessage) (reasons []string, err error)
	Sent  func(t CheckedTool) // is called just before the call goes out; may be nil
	// Plans reports whether the call, of the tool as it is now and with the arguments as
	// they would be sent, is only to be planned: Call then returns a *Planned, unless the
	// policy denies it. nil: no call is.
	Plans func(ctx context.Context, t CheckedTool, args json.RawMessage) bool
	// Elicit takes what the server asks during the call to the user. It is called for one
	// thing at a time, and its time is not the server's (Options.CallTimeout). A server of
	// before 2026-07-28 does not always say for which of several calls it asks: it is then
	// the oldest one in flight with an Elicit. nil: what servers ask is declined, and they
	// are told that no user can be asked.
	Elicit  Elicit
	Elicits ElicitCapabilities // of the client that Elicit asks
}

// A CallResult is what a tool answered.
type CallResult struct {
	JSON    json.RawMessage // the CallToolResult as the server wrote it
	IsError bool            // it says that the tool failed, which is no error of the call
}

// Planned is the error of a call that is only planned: nothing was sent.
type Planned struct {
	Server    string
	Tool      catalog.Tool
	Arguments json.RawMessage // as they would have been sent
}

func (p *Planned) Error() string {
	return fmt.Sprintf("calling tool %q of server %q was only planned", p.Tool.Name, p.Server)
}

// Call calls a tool.
func (p *Proxy) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	args, err := canonicalArguments(ctx, r.Arguments)
	if err != nil {
		return CallResult{}, fmt.Errorf("calling tool %q of server %q: %w", r.Tool, r.Server, err)
	}
	return with(p, r.Server, func(u *upstream) (CallResult, error) { return u.callInTurn(ctx, r, args) })
}

// authorize asks the policy whether the call may be made with these arguments, and
// reports to Sent that it goes out.
func (r CallRequest) authorize(ctx context.Context, u *upstream, t CheckedTool, args json.RawMessage) error {
	s := u.server
	c := policy.Call{
		Server: policyNames(s), Identity: u.identity + t.Digest,
		Tool:      policy.Tool{Name: t.Name, Alias: t.Alias, Twins: t.Twins(), ReadOnly: t.ReadsOnly, Unaccepted: t.Unaccepted, Acceptable: t.Acceptable, Digest: t.Digest},
		Arguments: args, Changed: t.Changed(), Allowed: r.Allowed, Planned: r.Plans != nil && r.Plans(ctx, t, args),
	}
	if r.Check != nil {
		var err error
		if c.Reasons, err = r.Check(s, t.Tool, args); err != nil {
			return err
		}
	}
	if err := r.Run.Authorize(ctx, c); err != nil {
		return err
	}
	if c.Planned {
		return &Planned{s.Name, t.Tool, args}
	}
	if r.Sent != nil {
		r.Sent(t)
	}
	return nil
}

// An Elicitation is what a server asks during a call (MCP specification, Elicitation).
// Its texts are cleaned, bounded and without the secrets of the server's entry.
type Elicitation = elicitation.Request

// An ElicitationReply is the answer to one: accept, decline or cancel, and what was
// entered. It goes to the server only if it fits the form.
type ElicitationReply = elicitation.Reply

// ElicitCapabilities are the ways in which a client can ask its user: servers are told
// of these and of no others.
type ElicitCapabilities = elicitation.Capabilities

// An Elicit asks the user what a server wants to know. Its ctx ends with the call, or
// when the server no longer wants to know. An error of it fails what the server asked.
type Elicit = func(ctx context.Context, e Elicitation) (ElicitationReply, error)

// SetElicits says which ways of asking the client has, before calls are made for it.
// Servers of before 2026-07-28 learn of them once, at the beginning of a session. One
// that was told otherwise is therefore connected anew by the next call, unless calls
// are in flight: those, and the ones that join them, have what both the session and
// CallRequest.Elicits allow. Later servers are told with each call.
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

// WithElicit returns a context in which ReadResource and GetPrompt take what a server
// asks to elicit, as CallRequest.Elicit does for calls.
func WithElicit(ctx context.Context, can ElicitCapabilities, elicit Elicit) context.Context {
	return context.WithValue(ctx, askingKey{}, asking{can, elicit})
}

// ListResources returns the resources of a server as a JSON array of what it
// wrote, all pages of it. A server without resources gives an empty one.
func (p *Proxy) ListResources(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, itemKind{transport.MethodListResources, "resources", "resources", hasResources})
}

// ListResourceTemplates is ListResources for the templates of URIs.
func (p *Proxy) ListResourceTemplates(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, itemKind{transport.MethodListTemplates, "resource templates", "resourceTemplates", hasResources})
}

// ListPrompts returns the prompts of a server as ListResources does resources.
func (p *Proxy) ListPrompts(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, itemKind{transport.MethodListPrompts, "prompts", "prompts", hasPrompts})
}

// ReadResource returns the ReadResourceResult as the server wrote it. WithElicit says who
// answers what the server asks.
func (p *Proxy) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	if uri == "" || len(uri) > maxURI {
		return nil, fmt.Errorf("reading a resource of server %q: the URI is empty or longer than %d bytes", server, maxURI)
	}
	r := itemRequest{transport.MethodReadResource, "resources", hasResources, fmt.Sprintf("reading resource %q", text.Printable(uri, 200))}
	return p.requestItem(ctx, server, r, &transport.Params{URI: uri})
}

// GetPrompt returns the GetPromptResult as the server wrote it. WithElicit says who
// answers what the server asks.
func (p *Proxy) GetPrompt(ctx context.Context, server, name string, args map[string]string) (json.RawMessage, error) {
	params := &transport.Params{Name: name}
	if len(args) > 0 {
		raw, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		params.Arguments = raw
	}
	r := itemRequest{transport.MethodGetPrompt, "prompts", hasPrompts, fmt.Sprintf("getting prompt %q", text.Printable(name, maxPromptName))}
	return p.requestItem(ctx, server, r, params)
}

func (p *Proxy) listItems(ctx context.Context, server string, kind itemKind) (json.RawMessage, error) {
	return with(p, server, func(u *upstream) (json.RawMessage, error) {
		if err := u.checkEntry(ctx); err != nil {
			return nil, err
		}
		return listItems(ctx, u, kind)
	})
}

func (p *Proxy) requestItem(ctx context.Context, server string, r itemRequest, params *transport.Params) (json.RawMessage, error) {
	return with(p, server, func(u *upstream) (json.RawMessage, error) {
		if err := u.checkEntry(ctx); err != nil {
			return nil, err
		}
		return requestItem(ctx, u, r, params)
	})
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

// canonicalArguments returns the one form of the arguments that is checked, shown to the
// user, and sent: a check of what the server reads differently would be none.
func canonicalArguments(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || rawjson.IsNull(args) {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' {
		return nil, errNoObject
	}
	args, err := room.Decode(ctx, "reading the arguments of a call", len(args), room.Arguments, func() (json.RawMessage, error) { return rawjson.Canonical(args) })
	switch {
	case errors.Is(err, rawjson.ErrNotJSON):
		return nil, errNoObject
	case err != nil:
		return nil, fmt.Errorf("the arguments cannot be sent: %w", err)
	}
	return args, nil
}

var errNoObject = errors.New("the arguments are not a JSON object")

// policyNames is a server as policies know it.
func policyNames(s config.Server) policy.Server { return policy.Server{Name: s.Name, Alias: s.Alias} }
