package gate

import (
	"maps"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestQuestionsAndResultsSayWhereServersRun, if not where they do by default.
func TestQuestionsAndResultsSayWhereServersRun(t *testing.T) {
	u := newUpstream(t)
	person := newUser(t, func(consent.Question) consent.Answer { return consent.Answer{Choice: consent.ForCall} })
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Asker: person.Asker})
	for _, f := range []mcpproxy.Facts{
		{Server: config.Server{Name: "usual"}, Where: mcpproxy.OnHost},
		{Server: config.Server{Name: "boxed"}, Where: mcpproxy.InSandbox},
		{Server: config.Server{Name: "loose", Project: true}, Where: mcpproxy.OnHost},
	} {
		ask := &policy.Ask{Server: f.Server.Name, Tool: "t", Arguments: []byte("{}"), Reasons: []string{"r"}}
		if err := g.ask(t.Context(), ask, &Effect{Facts: f}, 0, 0, func() {}); err != nil {
			t.Fatal(err)
		}
		g.noteWhere(f)
	}
	asked := map[string]string{}
	for _, q := range person.asked {
		asked[q.Calls[0].Server] = q.Calls[0].Where
	}
	if want := map[string]string{"usual": "", "boxed": "sandboxed", "loose": "host"}; !maps.Equal(asked, want) {
		t.Errorf("the questions say %v, want %v", asked, want)
	}
	if want := map[string]string{"boxed": "sandboxed", "loose": "host"}; !maps.Equal(g.Where(), want) {
		t.Errorf("the result says %v, want %v", g.Where(), want)
	}
}
