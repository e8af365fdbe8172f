package mcpproxy

import "github.com/toolcell/toolcell/mcpproxy/elicitation"

// An Elicitation is what a server asks during a call (MCP specification, Elicitation).
// Its texts are cleaned, bounded and without the secrets of the server's entry.
type Elicitation = elicitation.Request

// An ElicitationReply is the answer to one: accept, decline or cancel, and what was
// entered. It goes to the server only if it fits the form.
type ElicitationReply = elicitation.Reply

// ElicitCapabilities are the ways in which a client can ask its user: servers are told
// of these and of no others.
type ElicitCapabilities = elicitation.Capabilities

// SetElicits says which ways of asking the client has, before calls are made for it.
// Servers of before 2026-07-28 learn of them once, at the beginning of a session. One
// that was told otherwise is therefore connected anew by the next call, unless calls
// are in flight: those, and the ones that join them, have what both the session and
// Want.Can allow. Later servers are told with each call.
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
