package hostapi

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
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
		api := New(Options{Upstreams: oneServer{}, Asker: entering{content: map[string]any{"n": c.number}}})
		reply, err := api.elicit(t.Context(), mcpproxy.Elicitation{Server: "up", Tool: "f"})
		if (err != nil) != (c.want == "") || err == nil && string(reply.Content) != `{"n":`+c.want+`}` {
			t.Errorf("%v: %s, %v", c.number, reply.Content, err)
		}
	}
}
