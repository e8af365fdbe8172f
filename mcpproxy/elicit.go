package mcpproxy

import (
	"context"

	"github.com/toolcell/toolcell/mcpproxy/elicitation"
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

// An Elicit asks the user what a server wants to know. Its ctx ends with the call, or
// when the server no longer wants to know. An error of it fails what the server asked.
type Elicit = func(ctx context.Context, e Elicitation) (ElicitationReply, error)

// SetElicits says which ways of asking the client has, before calls are made for it.
// Servers of before 2026-07-28 learn of them once, at the beginning of a session. One
// that was told otherwise is therefore connected anew by the next call, unless calls
// are in flight: those, and the ones that join them, have what both the session and
// CallRequest.Elicits allow. Later servers are told with each call.
func (p *Proxy) SetElicits(can ElicitCapabilities) { p.elicits.Store(&can) }

// elicitsNow returns what SetElicits set last.
func (p *Proxy) elicitsNow() ElicitCapabilities {
	if can := p.elicits.Load(); can != nil {
		return *can
	}
	return ElicitCapabilities{}
}

// asking is who can be asked during a request.
type asking struct {
	can    ElicitCapabilities
	elicit Elicit // nil: nobody
}

type askingKey struct{}

// WithElicit returns a context in which ReadResource and GetPrompt take what a server
// asks to elicit, as CallRequest.Elicit does for calls.
func WithElicit(ctx context.Context, can ElicitCapabilities, elicit Elicit) context.Context {
	return context.WithValue(ctx, askingKey{}, asking{can, elicit})
}

// askingOf returns who can be asked in ctx.
func askingOf(ctx context.Context) asking {
	a, _ := ctx.Value(askingKey{}).(asking)
	return a.orNobody()
}

// orNobody drops the capabilities of a client that nothing leads to.
func (a asking) orNobody() asking {
	if a.elicit == nil {
		a.can = ElicitCapabilities{}
	}
	return a
}
