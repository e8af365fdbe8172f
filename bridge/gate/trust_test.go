package gate

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
)

// TestTheUserAcceptsAHintWithACall, and only then.
func TestTheUserAcceptsAHintWithACall(t *testing.T) {
	for _, believe := range []bool{true, false} {
		var server *mcp.Server
		define := func(reads bool) {
			server.AddTool(&mcp.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		}
		p := bridgetest.Servers{"up": {"look": nil}}.Proxy(t, bridgetest.Options{Tool: func(s *mcp.Server, _ string) bool {
			server = s
			define(false)
			return true
		}})
		if _, err := p.Refresh(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		define(true)
		if _, err := p.Refresh(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		user := newUser(t, func(q consent.Question) consent.Answer {
			if q.Calls[0].Hint == "" {
				t.Errorf("asked about %+v, want a hint", q.Calls[0])
			}
			return consent.Answer{Choice: map[bool]consent.Choice{true: consent.Believe, false: consent.ForCall}[believe]}
		})
		j := newJournal(t, "")
		g := New(Options{Upstreams: p, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = 'writes'"), Asker: user.Asker, Taint: &consent.Taint{}, Record: j.run})
		for range 2 {
			if _, err := g.Do(t.Context(), Request{Method: mcpproxy.CallTool, Server: "up", Name: "look"}); err != nil {
				t.Fatal(err)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[believe]; len(user.asked) != want {
			t.Errorf("accepted: %v: asked %d times", believe, len(user.asked))
		}
		if n := strings.Count(j.summary(t), "pin look question\n"); n != map[bool]int{true: 1, false: 0}[believe] {
			t.Errorf("accepted: %v: on record is\n%s", believe, j.summary(t))
		}
	}
}
