package gate

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestNumbersOfFormsDoNotChange on their way: what the SDK has decoded to a float64 may
// have been another number.
func TestNumbersOfFormsDoNotChange(t *testing.T) {
	for _, c := range []struct {
		number any
		want   string
	}{
		{float64(1 << 53), ""},
		{float64(-1 << 53), ""},
		{1e300, ""},
		{float64(1<<53 - 1), "9007199254740991"},
		{-0.1, "-0.1"},
		{json.Number("9007199254740993"), "9007199254740993"},
		{int64(1<<53 + 1), "9007199254740993"},
	} {
		g := New(Options{Policy: policy.None().NewEnforcer(), Asker: newUser(t, func(consent.Question) consent.Answer {
			return consent.Answer{Action: "accept", Content: map[string]any{"n": c.number}}
		}).Asker})
		reply, err := g.Elicit(t.Context(), mcpproxy.Elicitation{Server: "up", Tool: "f"})
		if (err != nil) != (c.want == "") || err == nil && string(reply.Content) != `{"n":`+c.want+`}` {
			t.Errorf("%v: %s, %v", c.number, reply.Content, err)
		}
	}
}

// TestAnswersToAServerAreTheUsers.
func TestAnswersToAServerAreTheUsers(t *testing.T) {
	for name, c := range map[string]struct {
		answer consent.Answer
		want   mcpproxy.ElicitationReply
	}{
		"accepted":          {consent.Answer{Action: "accept", Content: map[string]any{"s": "x"}}, mcpproxy.ElicitationReply{Action: "accept", Content: json.RawMessage(`{"s":"x"}`)}},
		"declined":          {consent.Answer{Action: "decline"}, mcpproxy.ElicitationReply{Action: "decline"}},
		"an address opened": {consent.Answer{Action: "accept"}, mcpproxy.ElicitationReply{Action: "accept"}},
	} {
		var asked consent.Question
		g := New(Options{Policy: policy.None().NewEnforcer(), Asker: newUser(t, func(q consent.Question) consent.Answer {
			asked = q
			return c.answer
		}).Asker})
		e := mcpproxy.Elicitation{Server: "up", Tool: "f", Message: "m", Schema: json.RawMessage("{}"), URL: "https://a", ID: "1", Key: "k"}
		reply, err := g.Elicit(t.Context(), e)
		if err != nil || reply.Action != c.want.Action || string(reply.Content) != string(c.want.Content) || (reply.Content == nil) != (c.want.Content == nil) {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
		want := consent.Form{Server: "up", Tool: "f", Message: "m", Schema: json.RawMessage("{}"), URL: "https://a", ID: "1", Key: "k"}
		if asked.Form == nil || !reflect.DeepEqual(*asked.Form, want) {
			t.Errorf("%s: asked %+v", name, asked.Form)
		}
	}
	user := newUser(t, always(consent.Deny))
	user.End()
	if reply, err := New(Options{Asker: user.Asker}).Elicit(t.Context(), mcpproxy.Elicitation{}); err == nil || reply.Action != "" {
		t.Errorf("of a run that has ended: %+v, %v", reply, err)
	}
}

// TestEachRunTellsWhatItsOwnClientShows: since 2026-07-28 each request of a client may say
// something else, also while a run of an earlier one goes on.
func TestEachRunTellsWhatItsOwnClientShows(t *testing.T) {
	var told []mcpproxy.ElicitCapabilities
	up := bridgetest.Servers{"up": {"write": nil}}.Proxy(t, bridgetest.Options{Stateless: true, Tool: func(s *mcp.Server, name string) bool {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			e := r.ClientCapabilities().Elicitation
			told = append(told, mcpproxy.ElicitCapabilities{Form: e != nil && e.Form != nil, URL: e != nil && e.URL != nil})
			return &mcp.CallToolResult{}, nil
		})
		return true
	}})
	form, address := mcpproxy.ElicitCapabilities{Form: true}, mcpproxy.ElicitCapabilities{URL: true}
	run := func(can mcpproxy.ElicitCapabilities) *Gate {
		return New(Options{Policy: policy.None().NewEnforcer(), Upstreams: up, Granted: granted, Asker: newUser(t, always(consent.Deny)).Asker, Can: can})
	}
	first, second := run(form), run(address)
	for _, g := range []*Gate{first, second, first} {
		if _, err := g.Do(t.Context(), requests["tools/call"]); err != nil {
			t.Fatal(err)
		}
	}
	if want := []mcpproxy.ElicitCapabilities{form, address, form}; !slices.Equal(told, want) {
		t.Errorf("the server was told of %+v, want %+v", told, want)
	}
	if g := New(Options{Policy: policy.None().NewEnforcer(), Can: form}); g.user() != nil || g.o.Can.Any() {
		t.Error("a gate without an asker has a user")
	}
}
