package gate

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
		g := New(Options{Policy: policy.None().NewRun(), Asker: entering{content: map[string]any{"n": c.number}}})
		reply, err := g.Elicit(t.Context(), mcpproxy.Elicitation{Server: "up", Tool: "f"})
		if (err != nil) != (c.want == "") || err == nil && string(reply.Content) != `{"n":`+c.want+`}` {
			t.Errorf("%v: %s, %v", c.number, reply.Content, err)
		}
	}
}

// toldServer is up, and notes what each request says of the client.
type toldServer struct {
	*upstream
	told []mcpproxy.ElicitCapabilities
}

func (s *toldServer) Prepare(ctx context.Context, server string, w mcpproxy.Want) (*mcpproxy.Prepared, error) {
	s.told = append(s.told, w.Can)
	return s.upstream.Prepare(ctx, server, w)
}

// TestEachRunTellsWhatItsOwnClientShows: since 2026-07-28 each request of a client may say
// something else, also while a run of an earlier one goes on.
func TestEachRunTellsWhatItsOwnClientShows(t *testing.T) {
	up := &toldServer{upstream: newUpstream(t)}
	form, address := mcpproxy.ElicitCapabilities{Form: true}, mcpproxy.ElicitCapabilities{URL: true}
	run := func(can mcpproxy.ElicitCapabilities) *Gate {
		return New(Options{Policy: policy.None().NewRun(), Upstreams: up, Granted: granted, Asker: userIs{}, Can: can})
	}
	first, second := run(form), run(address)
	var want []mcpproxy.ElicitCapabilities
	for _, kind := range []string{"tools/call", "resources/read"} {
		for _, g := range []*Gate{first, second, first} {
			if _, err := g.Do(t.Context(), requests[kind]); err != nil {
				t.Fatal(err)
			}
			want = append(want, g.o.Can)
		}
	}
	if !slices.Equal(up.told, want) {
		t.Errorf("the server was told of %+v, want %+v", up.told, want)
	}
	if g := New(Options{Policy: policy.None().NewRun(), Can: form}); g.user() != nil || g.o.Can.Any() {
		t.Error("a gate without an asker has a user")
	}
}
