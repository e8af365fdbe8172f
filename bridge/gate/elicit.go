package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// user answers what servers ask during requests; it is nil if no user can be asked.
func (g *Gate) user() mcpproxy.User {
	if !g.o.Can.Any() {
		return nil
	}
	return g
}

// Elicit takes what a server asks during a request to the user; it implements mcpproxy.User.
func (g *Gate) Elicit(ctx context.Context, e mcpproxy.Elicitation) (reply mcpproxy.ElicitationReply, err error) {
	start := time.Now()
	answer, err := g.o.Asker.AskForm(ctx, consent.Form{
		Server: e.Server, Tool: e.Tool, Message: e.Message, Schema: e.Schema, URL: e.URL, ID: e.ID, Key: e.Key,
	})
	exportAsk(ctx, start, err)
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
