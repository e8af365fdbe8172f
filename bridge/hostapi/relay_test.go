package hostapi

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// entering is a user who enters this into every form.
type entering struct {
	Asker
	content map[string]any
}

func (e entering) AskForm(context.Context, consent.Form) (consent.Answer, error) {
	return consent.Answer{Action: "accept", Content: e.content}, nil
}

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
		api := New(Options{Policy: policy.None().NewRun(), Upstreams: oneServer{}, Asker: entering{content: map[string]any{"n": c.number}}})
		reply, err := api.elicit(t.Context(), mcpproxy.Elicitation{Server: "up", Tool: "f"})
		if (err != nil) != (c.want == "") || err == nil && string(reply.Content) != `{"n":`+c.want+`}` {
			t.Errorf("%v: %s, %v", c.number, reply.Content, err)
		}
	}
}

// toldServer is up, and notes at each request what the client was last said to show.
type toldServer struct {
	askedServer
	now  mcpproxy.ElicitCapabilities
	told []mcpproxy.ElicitCapabilities
}

func (s *toldServer) SetElicits(can mcpproxy.ElicitCapabilities) { s.now = can }

func (s *toldServer) Call(context.Context, mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	s.told = append(s.told, s.now)
	return mcpproxy.CallResult{JSON: json.RawMessage(`{}`)}, nil
}

func (s *toldServer) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	s.told = append(s.told, s.now)
	return json.RawMessage(`{}`), nil
}

// TestEachRunTellsWhatItsOwnClientShows: since 2026-07-28 each request of a client may say
// something else, also while a run of an earlier one goes on.
func TestEachRunTellsWhatItsOwnClientShows(t *testing.T) {
	up := &toldServer{}
	form, address := mcpproxy.ElicitCapabilities{Form: true}, mcpproxy.ElicitCapabilities{URL: true}
	run := func(can mcpproxy.ElicitCapabilities) *API {
		return New(Options{Policy: policy.None().NewRun(), Upstreams: up, Granted: map[string]bool{"up": true}, Asker: &forTheRun{}, Elicits: can})
	}
	first, second := run(form), run(address)
	var want []mcpproxy.ElicitCapabilities
	for _, method := range []string{"call_tool", "read_resource"} {
		for _, api := range []*API{first, second, first} {
			if _, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"f","uri":"x:","arguments":{},"unchecked":true}`)); err != nil {
				t.Fatal(err)
			}
			want = append(want, api.elicits)
		}
	}
	if !slices.Equal(up.told, want) {
		t.Errorf("the server was told of %+v, want %+v", up.told, want)
	}
}
