package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// A Call is a request of code to the host.
type Call struct {
	Method string
	Params Params
	Raw    json.RawMessage // the parameters as the code wrote them
}

// effects are the methods that get to servers, as MCP calls them.
var effects = map[string]string{
	"call_tool": mcpproxy.CallTool, "read_resource": mcpproxy.ReadResource, "get_prompt": mcpproxy.GetPrompt,
	"list_resources": mcpproxy.ListResources, "list_resource_templates": mcpproxy.ListTemplates, "list_prompts": mcpproxy.ListPrompts,
}

// CarryOut carries out what code asks: an effect passes the gate, all else is answered by h.
// Whatever the code asks, it only gets what its run may have: calls of tools and all that is
// asked of a running server need a grant, documentation does not. Number is as of [Host].
func CarryOut(ctx context.Context, g *gate.Gate, h Host, number int, method string, raw json.RawMessage) (Answer, error) {
	defer g.Settled(number)
	answer, err := carryOut(ctx, g, h, number, method, raw)
	g.NoteSilent(err)
	return answer, ofStoppedRun(err, g.WhyStopped())
}

func carryOut(ctx context.Context, g *gate.Gate, h Host, number int, method string, raw json.RawMessage) (Answer, error) {
	effect := effects[method]
	if effect == "" {
		g.Settled(number) // no dry run plans it
	}
	if err := g.WhyStopped(); err != nil {
		return Answer{}, err
	}
	p, err := readParams(ctx, raw)
	if wrong, ok := errors.AsType[*CallError](err); ok {
		wrong.Message = text.Bound(method, 40) + "(): " + wrong.Message
		return Answer{}, wrong
	}
	if err != nil {
		return Answer{}, fmt.Errorf("reading the parameters of %s: %w", text.Bound(method, 40), err)
	}
	if effect == "" {
		if p.Derived {
			g.NoteDerived()
		}
		return h.Answer(ctx, Call{method, p, raw})
	}
	result, err := g.Do(ctx, p.request(effect, number, raw))
	if err != nil {
		tool := ""
		if effect == mcpproxy.CallTool {
			tool = p.Tool
		}
		return Answer{}, NewCallError(err, g.ServerName(p.Server), tool)
	}
	return Answer{JSON: result}, nil
}

// request returns what is asked of the gate.
func (p Params) request(method string, number int, raw json.RawMessage) gate.Request {
	r := p.Request
	r.Method, r.Raw, r.Number = method, raw, number
	switch method {
	case mcpproxy.CallTool:
		r.Name = p.Tool
	case mcpproxy.ReadResource:
		r.Name = p.URI
	case mcpproxy.GetPrompt:
	default:
		r.Name = "" // of a list
	}
	return r
}

// NewCallError returns the error of a call that is about a server, as the code gets it.
func NewCallError(err error, server, tool string) error {
	kind := ""
	if wrong, ok := errors.AsType[*signature.ArgumentError](err); ok {
		kind = wrong.Kind
	}
	return &CallError{Message: mcpproxy.ShortOutput(err).Error(), Server: server, Tool: tool, Kind: kind, Cause: err}
}

// ofStoppedRun marks the error of a call that failed because the run was stopped. A task
// that gets it may live on in the session, and outlive the run. The code may have ended, and
// with it its calls, before one of them was told why.
func ofStoppedRun(err, why error) error {
	if why != nil && errors.Is(err, context.Canceled) {
		err = why
	}
	if !gate.IsStopped(err) {
		return err
	}
	e := CallError{Message: err.Error(), Cause: err}
	if known, ok := errors.AsType[*CallError](err); ok {
		e = *known
	}
	e.Stopped = true
	return &e
}
