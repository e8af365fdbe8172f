package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

// What a server can be asked for, by the methods of MCP.
const (
	CallTool      = transport.MethodCallTool
	ReadResource  = transport.MethodReadResource
	GetPrompt     = transport.MethodGetPrompt
	ListResources = transport.MethodListResources
	ListTemplates = transport.MethodListTemplates
	ListPrompts   = transport.MethodListPrompts
)

// ErrChanged is the error of Send if the server's entry, the place where it runs or the tool's
// definition is no longer the one that was prepared, and so decided on. Nothing was sent.
var ErrChanged = errors.New("the server or its tool has changed; try it again")

// ErrCallLost is in the error of a call whose server ended before it answered.
// Whether the call took effect is not known, so it is never made again by itself.
var ErrCallLost = errors.New("the call is lost and may have taken effect; it was not repeated")

// A Want is one request to a server: a tool call, a resource, a prompt or a list.
type Want struct {
	Method string // CallTool, ReadResource and so on
	Name   string // of the tool, by name or alias, or of the prompt; the URI of the resource; empty for lists
	// Live asks the running server for the current definition of the tool, and starts the
	// server for that. Otherwise the kept definition is used.
	Live bool
	// Can are the ways in which the caller's client can ask its user. Servers of before
	// 2026-07-28 learn of them once, at the beginning of a session: see SetElicits.
	Can ElicitCapabilities
}

// Facts describe a request for a decision. All of them are of one moment.
type Facts struct {
	Server config.Server
	Entry  string // its Fingerprint
	Where  string // it runs, or will if it is started now: OnHost, InSandbox or Remote
	Method string
	Name   string      // of the tool, as the server has it, or Want.Name
	Tool   CheckedTool // of a call
}

// Identity identifies everything that was decided on except the arguments: the server's
// entry, where it runs, and the tool's definition or the method.
func (f Facts) Identity() string {
	if f.Method == CallTool {
		return f.Entry + f.Where + f.Tool.Digest
	}
	return f.Entry + f.Where + f.Method
}

// Writes reports whether the request may change something: it calls a tool that does not count as one
// that only reads.
func (f Facts) Writes() bool { return f.Method == CallTool && !f.Tool.ReadsOnly }

// A CheckedTool is a tool that was compared with its pin. Policies, plans and the log of
// calls go by its ReadsOnly, and by nothing else.
type CheckedTool struct {
	catalog.Tool
	pins.Standing
}

// A CallResult is what a server answered.
type CallResult struct {
	JSON    json.RawMessage // the result as the server wrote it; of a list, a JSON array of its items
	IsError bool            // it says that the tool failed, which is no error of the call
}

// Progress is called with what a server reports while it works on a request; total is 0
// if it is not known.
type Progress = func(done, total float64, text string)

// A User answers the elicitations of a server during a request. ctx ends with the request,
// or when the server withdraws the elicitation, which fails if Elicit returns an error.
// Elicit is called for one elicitation at a time. The time it takes does not count toward
// Options.CallTimeout.
type User interface {
	Elicit(ctx context.Context, e Elicitation) (ElicitationReply, error)
}

// A Prepared is a request that can be decided on and then sent. It holds no turn, session
// or lock.
type Prepared struct {
	proxy *Proxy
	want  Want
	facts Facts
	sent  atomic.Bool
}

// Prepare looks up the server and the tool of a request. It starts the server if its tools
// are not known, or if w asks for the current definition.
func (p *Proxy) Prepare(ctx context.Context, server string, w Want) (*Prepared, error) {
	p.SetElicits(w.Can)
	return p.prepare(ctx, server, w)
}

func (p *Proxy) prepare(ctx context.Context, server string, w Want) (*Prepared, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	prepared := &Prepared{proxy: p, want: w}
	var t catalog.Tool
	switch {
	case w.Method != CallTool:
		err = checkName(u, w)
	case w.Live:
		for range maxSwaps {
			if u, err = p.upstream(server); err != nil {
				return nil, err
			}
			if t, err = u.definitionNow(ctx, w.Name); !errors.Is(err, errRetired) {
				break
			}
		}
	default:
		var list *catalog.List
		if u, list, err = p.toolsOf(ctx, server); err == nil {
			var ok bool
			if t, ok = list.Resolve(w.Name); !ok {
				w.Live = true
				return p.prepare(ctx, server, w)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	prepared.facts = Facts{Server: u.described(), Entry: u.identity, Where: u.where(p.isSandboxed), Method: w.Method, Name: w.Name}
	if w.Method == CallTool {
		prepared.facts.Name, prepared.facts.Tool = t.Name, u.trusted(t)
	}
	return prepared, nil
}

// definitionNow returns the current definition of a tool, which it asks the running server
// for if need be.
func (u *upstream) definitionNow(ctx context.Context, tool string) (catalog.Tool, error) {
	ctx, left, cancel := deadline.Bound(ctx, u.callTimeout, noAnswer(u.callTimeout))
	defer cancel()
	resume := left.Pause() // starting is not the call
	s, release, err := u.acquire(ctx)
	resume()
	if err != nil {
		return catalog.Tool{}, err
	}
	defer release()
	return u.resolve(ctx, s, tool, true)
}

// Facts returns the facts that a decision is based on.
func (p *Prepared) Facts() Facts { return p.facts }

// Signature returns how the tool is called from Python, by the same definition.
func (p *Prepared) Signature() *signature.Signature {
	return p.proxy.signature(p.facts.Server.Name, p.facts.Tool.Tool)
}

// Sent reports whether part of the request may have been sent. It may be called at any
// time.
func (p *Prepared) Sent() bool { return p.sent.Load() }

// Send sends the request, once, and returns the answer. args are a JSON object: the
// arguments of a tool or prompt. They are sent unchanged. If user is nil, the server is told
// that no user can be asked, and its elicitations are declined.
//
// Before protocol 2026-07-28 a server does not always say to which of several requests an
// elicitation belongs: then the oldest request in flight with a user gets it. The error is
// ErrChanged, ErrCallLost, a *RemoteError, a timeout, or describes an invalid answer.
func (p *Prepared) Send(ctx context.Context, args json.RawMessage, user User, progress Progress) (CallResult, error) {
	u, err := p.proxy.upstream(p.facts.Server.Name)
	if err != nil || u.identity != p.facts.Entry {
		return CallResult{}, ErrChanged
	}
	r := request{Prepared: p, user: user, args: args, progress: progress}
	var result CallResult
	switch p.want.Method {
	case CallTool:
		result, err = u.callInTurn(ctx, r)
	case ReadResource, GetPrompt:
		result.JSON, err = u.requestItem(ctx, r)
	default:
		result.JSON, err = u.listItems(ctx, r)
	}
	if errors.Is(err, errRetired) && !p.Sent() { // what has gone out is never sent again
		return CallResult{}, ErrChanged
	}
	return result, err
}

// A request is a Prepared on its way.
type request struct {
	*Prepared
	user     User // nil: no user can be asked
	args     json.RawMessage
	progress Progress
}

// what describes the request for errors.
func (r request) what() string {
	server := r.facts.Server.Name
	switch r.want.Method {
	case CallTool:
		return fmt.Sprintf("calling tool %q of server %q", r.facts.Name, server)
	case ReadResource:
		return fmt.Sprintf("reading resource %q of server %q", text.Printable(r.want.Name, 200), server)
	case GetPrompt:
		return fmt.Sprintf("getting prompt %q of server %q", text.Printable(r.want.Name, maxPromptName), server)
	case ListTemplates:
		return fmt.Sprintf("listing the resource templates of server %q", server)
	}
	return fmt.Sprintf("listing the %s of server %q", strings.TrimSuffix(r.want.Method, "/list"), server)
}

// callInTurn calls the tool when there are not too many calls of the server.
func (u *upstream) callInTurn(ctx context.Context, r request) (CallResult, error) {
	ctx, left, cancel := deadline.Bound(ctx, u.callTimeout, noAnswer(u.callTimeout))
	defer cancel()
	if err := u.turns.Acquire(ctx, 1); err != nil {
		return CallResult{}, fmt.Errorf("waiting for other calls of server %q to end: %w", u.server.Name, context.Cause(ctx))
	}
	defer u.turns.Release(1)
	resume := left.Pause() // starting is not the call
	s, release, err := u.acquireFor(ctx, r)
	resume()
	if err != nil {
		return CallResult{}, err
	}
	defer release()
	if err := u.unchanged(ctx, s, r); err != nil {
		return CallResult{}, err
	}
	began := time.Now()
	result, err := u.call(ctx, s, r, left)
	return result, s.Explain(err, began)
}

// unchanged returns ErrChanged if the definition of the tool has changed since Prepare. If
// the server was started since, or says that its tools have changed, a Live request first
// lists them again; for others they are listed in the background.
func (u *upstream) unchanged(ctx context.Context, s *transport.Session, r request) error {
	t, err := u.resolve(ctx, s, r.facts.Name, r.want.Live)
	if err != nil {
		return err
	}
	if now := u.trusted(t); now.Digest != r.facts.Tool.Digest || now.Standing != r.facts.Tool.Standing {
		return ErrChanged
	}
	return nil
}

// call sends the call and reads the answer.
func (u *upstream) call(ctx context.Context, s *transport.Session, r request, left *deadline.Deadline) (CallResult, error) {
	res, err := r.send(ctx, u, s, left, &transport.Params{Name: r.facts.Name, Arguments: r.args, Schema: r.facts.Tool.InputSchema, Progress: r.progress})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return CallResult{}, fmt.Errorf("%s: %w", r.what(), cause)
		}
		return CallResult{}, u.explainError(s, err, r.what(), ErrCallLost)
	}
	if err := res.Check(); err != nil {
		return CallResult{}, fmt.Errorf("%s: %w", r.what(), err)
	}
	if res.IsError { // others are the data that the user asked for and stay as they are
		hide := func() (json.RawMessage, error) { return u.secrets.JSON(res.Result) }
		if res.Result, err = memory.Decode(ctx, "hiding secrets", len(res.Result), memory.Secrets, hide); err != nil {
			return CallResult{}, fmt.Errorf("%s: the tool failed, with a result that is left out: %w", r.what(), err)
		}
	}
	return CallResult{res.Result, res.IsError}, nil
}
