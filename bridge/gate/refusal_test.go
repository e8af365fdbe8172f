package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/signals/signalstest"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// TestARefusalIsExported: each kind, with the names that there are, and with no text of the code, of the policy or
// of the user.
func TestARefusalIsExported(t *testing.T) {
	const (
		secret = "correct-horse-battery"
		ask    = "[servers.up]\nask = '*'\n"
	)
	call := Request{Method: mcpproxy.CallTool, Server: "up", Name: "write", Arguments: json.RawMessage(`{"value":"` + secret + `"}`), Unchecked: true}
	change := func(f func(r *Request)) Request {
		r := call
		f(&r)
		return r
	}
	bound := change(func(r *Request) { r.Arguments, r.Args = nil, json.RawMessage(`["`+secret+`",2]`) })
	for name, tt := range map[string]struct {
		policy  string
		granted map[string]bool
		choice  consent.Choice // no asker if empty
		request Request
		want    string // server, tool, verdict and error type
	}{
		"a rule":                 {"[servers.up]\ndeny = ['w*']", granted, "", call, "up write deny policy_denied"},
		"a rule for all":         {"[servers.up]\ndeny = '*'", granted, "", call, "up write deny policy_denied"},
		"a policy that is wrong": {"deny = " + secret, granted, "", call, "up write deny policy_denied"},
		"a limit":                {"[servers.up]\ncallsPerRun = 1", granted, "", call, "up write deny limit_reached"},
		"not granted":            {"", nil, "", call, "up write deny not_granted"},
		"not granted, no tool":   {"", nil, "", change(func(r *Request) { r.Name = secret }), "up  deny not_granted"},
		"the user":               {ask, granted, consent.Deny, call, "up write deny user_denied"},
		"no user":                {ask, granted, "", call, "up write ask no_user"},
		"stopped":                {ask, granted, consent.Stop, call, "up write refused run_stopped"},
		"arguments":              {"", granted, "", bound, "up write refused invalid_arguments"},
		"arguments, by alias":    {"", granted, "", change(func(r *Request) { *r = bound; r.Name = "WRITE" }), "up write refused invalid_arguments"},
		"no object":              {"", granted, "", change(func(r *Request) { r.Arguments = json.RawMessage(`["` + secret + `"]`) }), "up write refused invalid_arguments"},
		"no server":              {"", granted, "", change(func(r *Request) { r.Server = secret }), "  refused unknown_server"},
		"no tool":                {"", granted, "", change(func(r *Request) { r.Name = secret }), "up  refused unknown_tool"},
		"a panic":                {ask, granted, consent.ForCall, call, "up write refused _OTHER"},
		"a resource":             {"[servers.up]\ndeny = '*'", granted, "", Request{Method: mcpproxy.ReadResource, Server: "up", Name: "x://" + secret}, "up  deny policy_denied"},
		"a prompt":               {ask, granted, consent.Deny, Request{Method: mcpproxy.GetPrompt, Server: "up", Name: secret}, "up  deny user_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			if err := u.AwaitTools(t.Context(), "up"); err != nil {
				t.Fatal(err)
			}
			o := Options{Upstreams: u.Proxy, Granted: tt.granted, Policy: policyIn(t, tt.policy), Taint: &consent.Taint{}}
			if tt.choice != "" {
				o.Asker = newUser(t, func(consent.Question) consent.Answer { return consent.Answer{Choice: tt.choice, Remark: secret} }).Asker
			}
			switch name {
			case "a limit":
				if _, err := o.Policy.Reserve(policy.Call{Server: policy.Server{Name: "up", Alias: "up"}}); err != nil {
					t.Fatal(err)
				}
			case "a panic":
				contain.Inject(t, func(at string) bool { return at == "consent: asking" })
			}
			c := signalstest.Start(t)
			exported := signals.Open(signals.Options{Log: slog.New(slog.DiscardHandler)})
			_, err := New(o).Do(exported.In(t.Context()), tt.request)
			exported.Close()
			if err == nil || u.sent.Load() > 0 {
				t.Fatalf("it was let out: %v", err)
			}
			checkRefusal(t, c, tt.request.Method, tt.want)
			if strings.Contains(c.Raw(), secret) {
				t.Error("a text of the code was exported")
			}
		})
	}
}

// checkRefusal checks the span and the counter of one refusal.
func checkRefusal(t *testing.T, c *signalstest.Collector, method, want string) {
	t.Helper()
	in := func(attrs map[string]string) string {
		if attrs["mcp.method.name"] != method {
			t.Errorf("it is exported as %v", attrs)
		}
		return fmt.Sprint(attrs["toolcell.server.name"], " ", attrs["gen_ai.tool.name"], " ", attrs["toolcell.verdict"], " ", attrs["error.type"])
	}
	var found []string
	for _, s := range c.Spans() {
		if s.Name == "toolcell.ask" {
			continue
		}
		found = append(found, in(s.Attrs))
		if name := strings.TrimSpace(method + " " + s.Attrs["gen_ai.tool.name"]); s.Name != name || s.Status.GetCode() == 0 {
			t.Errorf("the span %q has the status %v", s.Name, s.Status)
		}
	}
	for _, p := range c.Metric("toolcell.call.refused").GetSum().GetDataPoints() {
		found = append(found, in(signalstest.Attributes(p.Attributes)))
		if p.GetAsInt() != 1 {
			t.Errorf("it counts as %d", p.GetAsInt())
		}
	}
	if len(found) != 2 || found[0] != want || found[1] != want {
		t.Errorf("exported: %q, want %q twice", found, want)
	}
}

// TestWhatIsSentIsNoRefusal, nor what fails for another reason, though its error has the same words.
func TestWhatIsSentIsNoRefusal(t *testing.T) {
	u := newUpstream(t)
	if err := u.AwaitTools(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	c := signalstest.Start(t)
	exported := signals.Open(signals.Options{Log: slog.New(slog.DiscardHandler)})
	do := func(ctx context.Context, o Options, r Request) error {
		o.Upstreams, o.Granted, o.Taint = u.Proxy, granted, &consent.Taint{}
		_, err := New(o).Do(exported.In(ctx), r)
		return err
	}
	if err := do(t.Context(), Options{Policy: policyIn(t, "")}, requests["tools/call"]); err != nil {
		t.Error(err)
	}
	if err := do(t.Context(), Options{Policy: policyIn(t, "[servers.up]\nask = '*'"), Plan: true}, requests["tools/call"]); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := do(cancelled, Options{Policy: policyIn(t, "")}, requests["tools/call"]); err == nil {
		t.Error("a call that was cancelled was sent")
	}
	exported.Close()
	if m := c.Metric("toolcell.call.refused"); m != nil {
		t.Errorf("refused: %v", m)
	}
	if n := len(c.Named("tools/call write")); n != 1 {
		t.Errorf("%d spans", n)
	}
}

// TestARefusalKeepsItsError for those who look for its type.
func TestARefusalKeepsItsError(t *testing.T) {
	u := newUpstream(t)
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "")})
	_, err := g.Do(t.Context(), Request{Method: mcpproxy.CallTool, Server: "up", Name: "write", Args: json.RawMessage(`[1,2,3]`), Named: json.RawMessage(`{}`)})
	if _, ok := errors.AsType[*signature.ArgumentError](err); !ok {
		t.Errorf("arguments: %T", err)
	}
	_, err = g.Do(t.Context(), Request{Method: mcpproxy.CallTool, Server: "down", Name: "write"})
	if _, ok := errors.AsType[*mcpproxy.UnknownServerError](err); !ok {
		t.Errorf("a server: %T", err)
	}
}
