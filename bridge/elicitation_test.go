package bridge

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
)

func TestOnlyOneKnownChoiceIsAnAnswer(t *testing.T) {
	q := &consent.Question{Calls: []consent.Call{{Server: "bank", Tool: "transfer", Once: true}}}
	accept := func(content map[string]any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: content}
	}
	for name, res := range map[string]*mcp.ElicitResult{
		"nothing":               nil,
		"no content":            accept(nil),
		"cancelled":             {Action: "cancel"},
		"cancelled with yes":    {Action: "cancel", Content: map[string]any{"choice": "call"}},
		"no action":             {Content: map[string]any{"choice": "call"}},
		"unknown":               accept(map[string]any{"choice": "yes"}),
		"other case":            accept(map[string]any{"choice": "Call"}),
		"not offered":           accept(map[string]any{"choice": "run"}),
		"a list":                accept(map[string]any{"choice": []any{"call"}}),
		"true":                  accept(map[string]any{"choice": true}),
		"two values":            accept(map[string]any{"choice": "call", "more": 1}),
		"under another name":    accept(map[string]any{"approve": "call"}),
		"an action of ours":     {Action: "approve", Content: map[string]any{"choice": "call"}},
		"the title of a choice": accept(map[string]any{"choice": q.Title(consent.ForCall)}),
	} {
		if a, ok := answerOf(q, res); ok {
			t.Errorf("%s: taken for %+v", name, a)
		}
	}
	for res, want := range map[*mcp.ElicitResult]consent.Choice{
		accept(map[string]any{"choice": "call"}): consent.ForCall,
		accept(map[string]any{"choice": "stop"}): consent.Stop,
		accept(map[string]any{"choice": "deny"}): consent.Deny,
		{Action: "decline"}:                      consent.Deny,
	} {
		if a, ok := answerOf(q, res); !ok || a.Choice != want {
			t.Errorf("%+v: %+v, %v", res, a, ok)
		}
	}
}

func TestOnlyFormsThatTheClientShows(t *testing.T) {
	approval := &consent.Question{Calls: []consent.Call{{}}}
	address := &consent.Question{Form: &consent.Form{URL: "https://example.com"}}
	for name, tt := range map[string]struct {
		e         *mcp.ElicitationCapabilities
		form, url bool
	}{
		"none":     {nil, false, false},
		"empty":    {&mcp.ElicitationCapabilities{}, true, false},
		"url only": {&mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}, false, true},
		"both":     {&mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}, true, true},
	} {
		call := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{
			mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": tt.e},
		}}}
		c := displayOf(call)
		if c.canShow(approval) != tt.form || c.canShow(address) != tt.url || !c.multiRound {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
