package gate

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
)

// TestTheUserIsToldWhatACallMayChange, and by whose word: the server lists its tool once as
// it was when it was pinned, and then as it is now.
func TestTheUserIsToldWhatACallMayChange(t *testing.T) {
	day := regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	yes := true
	silent, reads := mcp.ToolAnnotations{}, mcp.ToolAnnotations{ReadOnlyHint: true}
	destroys, both := mcp.ToolAnnotations{DestructiveHint: &yes}, mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &yes}
	for name, tt := range map[string]struct {
		pinned, now mcp.ToolAnnotations
		want        []string // of each call
		writes      bool
	}{
		"silent":             {silent, silent, []string{"may change something (the server does not say otherwise)"}, true},
		"destroys":           {silent, destroys, []string{"may change something (the server says that it destroys something)"}, true},
		"always read":        {reads, reads, []string{"only reads, says the server (since DAY)"}, false},
		"reads no more":      {reads, silent, []string{"may change something (the server does not say otherwise)"}, true},
		"destroys meanwhile": {reads, both, []string{"may change something (the server says that it only reads, and that it destroys something)"}, true},
		"reads meanwhile": {silent, reads, []string{
			"may change something (the server now says that it only reads, but did not when its tools were pinned)",
			"only reads, says the server (you accepted that in a question)",
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var server *mcp.Server
			define := func(a mcp.ToolAnnotations) {
				server.AddTool(&mcp.Tool{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &a}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
			}
			p := bridgetest.Servers{"up": {"look": nil}}.Proxy(t, bridgetest.Options{Tool: func(s *mcp.Server, _ string) bool {
				server = s
				define(tt.pinned)
				return true
			}})
			for _, now := range []mcp.ToolAnnotations{tt.pinned, tt.now} {
				define(now)
				if _, err := p.Refresh(t.Context(), "up"); err != nil {
					t.Fatal(err)
				}
			}
			user := newUser(t, func(q consent.Question) consent.Answer {
				if slices.Contains(q.Choices(), consent.Believe) {
					return consent.Answer{Choice: consent.Believe}
				}
				return consent.Answer{Choice: consent.ForCall}
			})
			g := New(Options{Upstreams: p, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'\n[default]\nask = 'writes'"), Asker: user.Asker, Taint: &consent.Taint{}})
			for range tt.want {
				if _, err := g.Do(t.Context(), Request{Method: mcpproxy.CallTool, Server: "up", Name: "look"}); err != nil {
					t.Fatal(err)
				}
			}
			for i, want := range tt.want {
				c := user.asked[i].Calls[0]
				if day.ReplaceAllString(c.Effect, "DAY") != want || c.Writes != (tt.writes && i == 0) || c.Description != "Looks." {
					t.Errorf("call %d: %+v, want %s", i+1, c, want)
				}
			}
		})
	}
}

// TestReadingAResourceIsSaidToOnlyRead: the user is asked about it where all tools ask.
func TestReadingAResourceIsSaidToOnlyRead(t *testing.T) {
	u := newUpstream(t)
	user := newUser(t, always(consent.ForCall))
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'"), Asker: user.Asker, Taint: &consent.Taint{}})
	if _, err := g.Do(t.Context(), requests["resources/read"]); err != nil {
		t.Fatal(err)
	}
	if text := user.asked[0].Text(); !strings.HasSuffix(text, "; effect: `only reads`") {
		t.Errorf("asked %s", text)
	}
}
