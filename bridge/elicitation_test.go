package bridge

import (
	"encoding/json"
	"slices"
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

// TestTheFirstChoiceOfAFormAllowsNothing: clients highlight it, and Enter may take it.
func TestTheFirstChoiceOfAFormAllowsNothing(t *testing.T) {
	call := consent.Call{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(`{}`)}
	hint := call
	hint.Hint = "d"
	for _, q := range []*consent.Question{{Subject: "packages"}, {Calls: []consent.Call{call}}, {Calls: []consent.Call{hint}}, {Calls: []consent.Call{call, call}}, {Calls: []consent.Call{call}, Command: true}} {
		for _, titled := range []bool{true, false} {
			var schema struct {
				Properties struct {
					Choice struct {
						OneOf           []titledChoice
						Enum, EnumNames []string
						Default         any
					}
				}
			}
			if err := json.Unmarshal(display{titled: titled}.schema(q), &schema); err != nil {
				t.Fatal(err)
			}
			choice := schema.Properties.Choice
			var offered []consent.Choice
			for i, value := range choice.Enum {
				choice.OneOf = append(choice.OneOf, titledChoice{value, choice.EnumNames[i]})
			}
			for _, c := range choice.OneOf {
				offered = append(offered, consent.Choice(c.Const))
				if c.Title != q.Title(consent.Choice(c.Const)) {
					t.Errorf("%s has the title %q", c.Const, c.Title)
				}
			}
			if offered[0] != consent.Deny || choice.Default != nil {
				t.Errorf("the form offers %v, with the default %v", offered, choice.Default)
			}
			if all := q.Choices(); !slices.Equal(slices.Sorted(slices.Values(offered)), slices.Sorted(slices.Values(all))) {
				t.Errorf("the form offers %v, want %v", offered, all)
			}
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
