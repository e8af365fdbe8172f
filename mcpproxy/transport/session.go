package transport

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// The methods of requests.
const (
	MethodListTools     = "tools/list"
	MethodCallTool      = "tools/call"
	MethodListResources = "resources/list"
	MethodListTemplates = "resources/templates/list"
	MethodReadResource  = "resources/read"
	MethodListPrompts   = "prompts/list"
	MethodGetPrompt     = "prompts/get"
)

// A link carries one session: a process and its pipes, or HTTP requests.
type link interface {
	mcp.Transport
	// HangsOnDiscover waits until the server has taken server/discover and left it
	// unanswered for so long. It returns false if it has answered, or ctx ends.
	HangsOnDiscover(ctx context.Context, timeout time.Duration) bool
	// Fail ends the link after a handshake that failed with err, and returns why; cause is
	// that of its context. suspect means that the server had taken server/discover.
	Fail(err, cause error) (suspect bool, why error)
	// Begin takes the session of the handshake. It may wait until the server can ask the
	// user, if asks is set.
	Begin(ctx context.Context, cs *mcp.ClientSession, asks bool)
	// WaitingCalls returns the calls that wait for an answer over the link.
	WaitingCalls() *message.Calls
	// EndError returns why the link ended while calls were waiting, if it is known and they
	// have no reasons of their own.
	EndError() error
	// Explain returns an error of the server with what its Launcher knows of the time since
	// then, which may be nothing; nil stays nil.
	Explain(err error, since time.Time) error
	// Written returns the last lines that the server wrote beside its messages, without secrets
	// and escapes.
	Written() []string
	// Down is closed when the server ended or stopped talking.
	Down() <-chan struct{}
	// Stop ends the link, and with it the requests in flight. It may be called
	// at any time and more than once.
	Stop()
	// WaitClosed waits until nothing of the stopped link is left.
	WaitClosed()
	// Ended waits for the end of the link and describes it.
	Ended() error
	// Expired reports whether the server ended the session because it expired, which
	// is not a failure.
	Expired() bool
}

// Session is one live connection: a link and the MCP session over it.
type Session struct {
	link
	notes *message.Notifications
	mcp   *mcp.ClientSession
	can   elicitation.Capabilities
	since time.Time
}

// Params are the parameters of a request. Which count depends on the method.
type Params struct {
	Meta      mcp.Meta
	Name      string
	URI       string
	Arguments json.RawMessage
	Cursor    string

	// Schema is the tool's, which may ask for arguments to be sent as headers.
	Schema json.RawMessage
	// Progress is called with the server's progress reports; total is 0 if it is not
	// known.
	Progress func(done, total float64, text string)

	// Elicits are the ways in which the user can be asked during this request. Before
	// 2026-07-28, servers know those of the session instead.
	Elicits elicitation.Capabilities
	// Questions receives the elicitations of such a server during the request; if it is
	// nil, they are declined.
	Questions message.Questions
	// Inputs and State answer an earlier result of the same request that asked for
	// input (message.InputRequired).
	Inputs mcp.InputResponseMap
	State  string
}

// withMeta returns the parameters with more metadata.
func (p *Params) withMeta(meta mcp.Meta) *Params {
	if len(meta) == 0 {
		return p
	}
	more := *p
	more.Meta = maps.Clone(meta)
	maps.Copy(more.Meta, p.Meta)
	return &more
}

// Protocol returns the version of MCP that the session has.
func (s *Session) Protocol() string {
	if said := s.InitializeResult(); said != nil {
		return said.ProtocolVersion
	}
	return ""
}

// Request sends one request and waits for its result.
func (s *Session) Request(ctx context.Context, method string, params *Params) (message.Reply, error) {
	if params.Progress != nil {
		token, stop := s.notes.Listen(params.Progress)
		defer stop()
		params = params.withMeta(mcp.Meta{"progressToken": token})
	}
	params = params.withMeta(signals.Meta(ctx))
	if mayAsk(method) && !s.Legacy() && params.Elicits != s.can {
		params = params.withMeta(mcp.Meta{mcp.MetaKeyClientCapabilities: params.Elicits.ForRequest()})
	}
	c := &message.Call{Arguments: params.Arguments, Schema: params.Schema}
	if s.Legacy() && params.Questions != nil {
		defer s.notes.Collect(ctx, c, params.Questions)()
	}
	ctx = c.Begin(ctx)
	defer c.GiveUp()
	defer s.WaitingCalls().Forget(c)
	err := s.send(ctx, method, params)
	if r, ok := c.Result(); ok {
		return r, nil
	}
	return message.Reply{}, s.explain(c, err)
}

// mayAsk reports whether a server may ask for input before it answers a request.
func mayAsk(method string) bool {
	return method == MethodCallTool || method == MethodGetPrompt || method == MethodReadResource
}

// send sends a request with the SDK, whose result the connection keeps.
func (s *Session) send(ctx context.Context, method string, p *Params) (err error) {
	switch method {
	case MethodCallTool:
		params := &mcp.CallToolParams{Meta: p.Meta, Name: p.Name, InputResponses: p.Inputs, RequestState: p.State}
		if p.Arguments != nil {
			params.Arguments = p.Arguments
		}
		_, err = s.mcp.CallTool(ctx, params)
	case MethodGetPrompt:
		params := &mcp.GetPromptParams{Meta: p.Meta, Name: p.Name, InputResponses: p.Inputs, RequestState: p.State}
		if p.Arguments != nil {
			if err := json.Unmarshal(p.Arguments, &params.Arguments); err != nil {
				return err
			}
		}
		_, err = s.mcp.GetPrompt(ctx, params)
	case MethodReadResource:
		_, err = s.mcp.ReadResource(ctx, &mcp.ReadResourceParams{Meta: p.Meta, URI: p.URI, InputResponses: p.Inputs, RequestState: p.State})
	case MethodListTools:
		_, err = s.mcp.ListTools(ctx, &mcp.ListToolsParams{Meta: p.Meta, Cursor: p.Cursor})
	case MethodListResources:
		_, err = s.mcp.ListResources(ctx, &mcp.ListResourcesParams{Meta: p.Meta, Cursor: p.Cursor})
	case MethodListTemplates:
		_, err = s.mcp.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Meta: p.Meta, Cursor: p.Cursor})
	case MethodListPrompts:
		_, err = s.mcp.ListPrompts(ctx, &mcp.ListPromptsParams{Meta: p.Meta, Cursor: p.Cursor})
	default:
		panic("transport: no request of the method " + method + " is known; add it to send")
	}
	return err
}

// explain returns the error that the transport noted, or else the one of the SDK.
func (s *Session) explain(c *message.Call, err error) error {
	if failed := c.Failure(); failed != nil {
		return failed
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return refused
	}
	if message.IsLost(err) {
		if end := s.EndError(); end != nil {
			return end // the SDK does not say why a connection ended
		}
	}
	if err == nil {
		return errors.New("the answer is missing")
	}
	return err
}

// InitializeResult returns the server's description of itself in the handshake, or nil.
func (s *Session) InitializeResult() *mcp.InitializeResult { return s.mcp.InitializeResult() }

// Offers reports whether the server said that it has what a method is about, or said
// nothing of it.
func (s *Session) Offers(method string) bool {
	said := s.InitializeResult()
	if said == nil || said.Capabilities == nil {
		return true
	}
	switch method {
	case MethodListResources, MethodListTemplates, MethodReadResource:
		return said.Capabilities.Resources != nil
	case MethodListPrompts, MethodGetPrompt:
		return said.Capabilities.Prompts != nil
	}
	return true
}

// Legacy reports whether the server speaks a protocol of before 2026-07-28.
func (s *Session) Legacy() bool {
	said := s.InitializeResult()
	return said != nil && said.ProtocolVersion <= message.LegacyProtocol
}

// Elicits returns the ways to ask the user that were announced to the server when the
// session began.
func (s *Session) Elicits() elicitation.Capabilities { return s.can }

// Suits reports whether the session is right for a client with these capabilities. Before
// 2026-07-28, servers learn of them only when a session begins.
func (s *Session) Suits(can elicitation.Capabilities) bool {
	if s.Legacy() {
		return s.can == can
	}
	return s.can.ByRequest || !can.ByRequest // it does not take the older handshake, or need not
}

// AwaitCompleted returns a channel that is closed when the server reports that the user is
// done at an address, which it may have reported already.
func (s *Session) AwaitCompleted(id string) (done <-chan struct{}, stop func()) {
	return s.notes.AwaitCompleted(id)
}

// Age is how long ago the session began.
func (s *Session) Age() time.Duration { return time.Since(s.since) }

// Broken reports whether the server ended or stopped talking.
func (s *Session) Broken() bool {
	select {
	case <-s.Down():
		return true
	default:
		return false
	}
}

// Close ends the link and then the session, in this order because the SDK
// waits for calls in flight, which only end with the link.
func (s *Session) Close() {
	s.Stop()
	_ = s.mcp.Close() // what it was over is closed already
	s.WaitClosed()
}
