package hostapi

import (
	"context"
	"encoding/json"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
)

// elicit takes what a server asks during a call to the user.
func (a *API) elicit(ctx context.Context, e mcpproxy.Elicitation) (reply mcpproxy.ElicitationReply, err error) {
	answer, err := a.asker.AskForm(ctx, consent.Form{
		Server: e.Server, Tool: e.Tool, Message: e.Message, Schema: e.Schema, URL: e.URL, ID: e.ID,
	})
	if err != nil {
		return reply, err
	}
	reply.Action = answer.Action
	if answer.Content != nil {
		reply.Content, err = json.Marshal(answer.Content)
	}
	return reply, err
}

// asks reports whether somebody can be asked what servers ask.
func (a *API) asks() bool {
	return a.asker != nil && a.elicits != mcpproxy.ElicitCapabilities{}
}

// withElicit returns a context in which what a server asks for a resource or prompt
// reaches the user.
func (a *API) withElicit(ctx context.Context) context.Context {
	if !a.asks() {
		return ctx
	}
	return mcpproxy.WithElicit(ctx, a.elicits, a.elicit)
}
