package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// elicit takes what a server asks during a call to the user.
func (a *API) elicit(ctx context.Context, e mcpproxy.Elicitation) (reply mcpproxy.ElicitationReply, err error) {
	answer, err := a.asker.AskForm(ctx, consent.Form{
		Server: e.Server, Tool: e.Tool, Message: e.Message, Schema: e.Schema, URL: e.URL, ID: e.ID, Key: e.Key,
	})
	if err != nil {
		return reply, err
	}
	reply.Action = answer.Action
	if answer.Content == nil {
		return reply, nil
	}
	if err := checkExact(answer.Content); err != nil {
		return reply, err
	}
	reply.Content, err = json.Marshal(answer.Content)
	return reply, err
}

// maxExact is the largest integer up to which a float64, as which the SDK decodes
// numbers, has all integers.
const maxExact = 1 << 53

// checkExact returns an error for an answer in which a number may not be the one that
// was entered.
func checkExact(content map[string]any) error {
	for name, value := range content {
		if n, decoded := value.(float64); decoded && math.Abs(n) >= maxExact {
			return fmt.Errorf("the number entered for %q is too large to be passed on exactly", text.Printable(name, 100))
		}
	}
	return nil
}

// asks reports whether somebody can be asked what servers ask.
func (a *API) asks() bool {
	return a.asker != nil && a.elicits.Any()
}

// tellElicits tells the upstreams again what the client of this run can show. Runs of
// other requests, whose client can show something else, may have begun since.
func (a *API) tellElicits() { a.upstreams.SetElicits(a.elicits) }

// withElicit returns a context in which what a server asks for a resource or prompt
// reaches the user.
func (a *API) withElicit(ctx context.Context) context.Context {
	a.tellElicits()
	if !a.asks() {
		return ctx
	}
	return mcpproxy.WithElicit(ctx, a.elicits, a.elicit)
}
