package gate

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
)

// TestArgumentsAreBoundBeforeAnythingIsSent: what fits goes out, and what does not is refused
// in words of the one who wrote it.
func TestArgumentsAreBoundBeforeAnythingIsSent(t *testing.T) {
	var got []string
	up := bridgetest.Servers{"up": {"add": func(_ context.Context, args json.RawMessage) (string, error) {
		got = append(got, string(args))
		return "{}", nil
	}}}.Proxy(t, bridgetest.Options{
		Schemas: map[string]string{"add": `{"type":"object","properties":{"n":{"type":"integer"},"to":{"type":"string"}},"required":["n"]}`},
		Read:    func(string) { got = append(got, "read") },
	})
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	tool := func(r Request) Request {
		r.Method, r.Server, r.Name = mcpproxy.CallTool, "up", "add"
		return r
	}
	prompt := func(args string) Request {
		return Request{Method: mcpproxy.GetPrompt, Server: "up", Name: "p", Arguments: raw(args)}
	}
	for name, c := range map[string]struct {
		r             Request
		command, plan bool
		want          string // what is sent; or else
		err           string
	}{
		"of a function":           {r: tool(Request{Args: raw(`[5]`), Named: raw(`{"to":"x"}`)}), want: `{"n":5,"to":"x"}`},
		"of call_tool":            {r: tool(Request{Arguments: raw(`{ "n": 5 }`)}), want: `{"n":5}`},
		"unchecked":               {r: tool(Request{Arguments: raw(`{"n":"five"}`), Unchecked: true}), want: `{"n":"five"}`},
		"typed by the user":       {r: tool(Request{Named: raw(`{"n":"5","to":"5"}`), Typed: true}), want: `{"n":5,"to":"5"}`},
		"texts that nobody typed": {r: tool(Request{Named: raw(`{"n":"5"}`)}), err: "add(): n must be an integer, not str"},
		"a missing one":           {r: tool(Request{Named: raw(`{"to":"x"}`)}), err: "add() lacks 'n'"},
		"a missing one, typed":    {r: tool(Request{Named: raw(`{"to":"x"}`), Typed: true}), command: true, err: "up.add() lacks 'n'"},
		"of call_tool, wrong":     {r: tool(Request{Arguments: raw(`{"n":"five"}`)}), err: "add(): n must be an integer, not str"},
		"unchecked, no object":    {r: tool(Request{Arguments: raw(`[1]`), Unchecked: true}), err: `calling tool "add" of server "up"`},
		"no list":                 {r: tool(Request{Args: raw(`{}`), Named: raw(`{"n":5}`)}), err: "the positional arguments are not a JSON array"},
		"no object":               {r: tool(Request{Args: raw(`[5]`), Named: raw(`[]`)}), err: "object"},
		"of a prompt":             {r: prompt(`{"n":"1"}`), want: "read"},
		"of a prompt, no text":    {r: prompt(`{"n":1}`), err: `its argument "n" is not a text`},
		"of a prompt, no object":  {r: prompt(`[1]`), err: `getting prompt "p"`},
		"a planned result":        {r: tool(Request{Args: raw(`["<result 1>.number"]`)}), plan: true, want: ""},
		"no planned result":       {r: tool(Request{Args: raw(`["<result 9>.number"]`)}), plan: true, err: "add(): n must be an integer, not str"},
	} {
		got = nil
		g := New(Options{Upstreams: up, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Command: c.command, Plan: c.plan})
		if c.plan {
			g.Resume(1)
		}
		_, err := g.Do(t.Context(), c.r)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if sent := strings.Join(got, " "); sent != c.want {
			t.Errorf("%s: %s was sent, want %s", name, sent, c.want)
		}
	}
}
