package gate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
)

// prepared prepares a request of a server that may be used.
func prepared(t *testing.T, g *Gate, r Request) (*mcpproxy.Prepared, Effect) {
	t.Helper()
	server, err := g.admit(r.Server)
	if err != nil {
		t.Fatal(err)
	}
	p, e, err := g.prepare(t.Context(), server, r)
	if err != nil {
		t.Fatal(err)
	}
	return p, e
}

// decided is prepared, and has it decided that it may be sent.
func decided(t *testing.T, g *Gate, r Request) (*mcpproxy.Prepared, Effect) {
	t.Helper()
	p, e := prepared(t, g, r)
	if v := g.decide(t.Context(), &e, nil); !v.Allowed {
		t.Fatal(v.why())
	}
	return p, e
}

// TestLimitsHoldWhenACallIsSent: two calls may be allowed before one of them is sent.
func TestLimitsHoldWhenACallIsSent(t *testing.T) {
	u := newUpstream(t)
	const once = "[servers.up]\ncallsPerRun = 1"
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, once), Taint: &consent.Taint{}})
	p1, e1 := decided(t, g, requests["tools/call"])
	p2, e2 := decided(t, g, requests["tools/call"])
	if _, err := g.send(t.Context(), p1, e1, 1, g.journal(requests["tools/call"])); err != nil {
		t.Error(err)
	}
	if _, err := g.send(t.Context(), p2, e2, 2, g.journal(requests["tools/call"])); err == nil || !strings.Contains(err.Error(), "callsPerRun") {
		t.Errorf("the second: %v", err)
	}
	if log := g.CallLog(); u.sent.Load() != 1 || len(log.Calls) != 1 {
		t.Errorf("sent %d times, on record %+v", u.sent.Load(), log)
	}

	g = New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, once), Taint: &consent.Taint{}, Plan: true})
	_, e := prepared(t, g, requests["tools/call"])
	if _, err := g.plan(t.Context(), e, 1); err != nil {
		t.Error(err)
	}
	g.Settled(1)
	if _, err := g.plan(t.Context(), e, 2); err == nil || !strings.Contains(err.Error(), "callsPerRun") || len(g.Plan().Calls) != 1 {
		t.Errorf("the second of a plan: %v, %+v", err, g.Plan())
	}
}

// TestWhatDidNotGoOutTakesNoRoom: the server's entry has changed since it was prepared.
func TestWhatDidNotGoOutTakesNoRoom(t *testing.T) {
	u := newUpstream(t)
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\ncallsPerRun = 1"), Taint: &consent.Taint{}})
	r := requests["tools/call"]
	p, e := decided(t, g, r)
	u.changeEntry()
	if _, err := g.send(t.Context(), p, e, 1, g.journal(requests["tools/call"])); !errors.Is(err, mcpproxy.ErrChanged) || p.Sent() || u.sent.Load() > 0 {
		t.Fatalf("%v, sent %d", err, u.sent.Load())
	}
	if _, err := g.Do(t.Context(), r); err != nil || u.sent.Load() != 1 {
		t.Errorf("the next: %v, sent %d", err, u.sent.Load())
	}
}

// TestTheUserIsShownWhatIsAskedFor, of each kind, in its one form.
func TestTheUserIsShownWhatIsAskedFor(t *testing.T) {
	for kind, want := range map[string]string{
		"tools/call":      `write {"n":1}`,
		"resources/read":  `resources/read {"uri":"x://1"}`,
		"prompts/get":     `prompts/get {"arguments":{"n":"1"},"name":"p"}`,
		"resources/list":  `resources/list null`,
		"prompts/list":    `prompts/list null`,
		"templates/list":  `resources/templates/list null`,
		"a reading tool":  `read {}`,
		"a tool by alias": `write {}`,
	} {
		user := newUser(t, always(consent.ForCall))
		g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'"), Taint: &consent.Taint{}, Asker: user.Asker})
		r := requests[kind]
		r.Number = 7
		if _, err := g.Do(t.Context(), r); err != nil || len(user.asked) != 1 {
			t.Errorf("%s: %v, asked %d times", kind, err, len(user.asked))
			continue
		}
		c := user.asked[0].Calls[0]
		if got := fmt.Sprintf("%s %s", c.Tool, c.Arguments); got != want || c.Server != "up" || c.Number != 7 {
			t.Errorf("%s: the user is asked about %s of %q (%d), want %s", kind, got, c.Server, c.Number, want)
		}
	}
}

// TestRulesSeeTheArgumentsOfTools, and those alone.
func TestRulesSeeTheArgumentsOfTools(t *testing.T) {
	const rule = "[[servers.up.tools.write.when]]\npath = 'n'\nop = '>'\nvalue = 0\n"
	for _, c := range []struct {
		kind, args string
		asked      int
	}{{"tools/call", `{"n":1}`, 1}, {"tools/call", `{"n":0}`, 0}, {"prompts/get", `{"n":"1"}`, 0}} {
		user := newUser(t, always(consent.ForCall))
		g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, rule), Taint: &consent.Taint{}, Asker: user.Asker})
		r := requests[c.kind]
		r.Arguments = []byte(c.args)
		if _, err := g.Do(t.Context(), r); err != nil || len(user.asked) != c.asked {
			t.Errorf("%s of %s: %v, asked %d times", c.kind, c.args, err, len(user.asked))
		}
	}
}

// TestLaterCallsDoNotWaitForWhatIsNotPlanned, of a dry run.
func TestLaterCallsDoNotWaitForWhatIsNotPlanned(t *testing.T) {
	refused := New(Options{Plan: true})
	if _, err := refused.Do(t.Context(), Request{Method: mcpproxy.ListPrompts, Server: "up", Number: 1}); err == nil || refused.planner.order.next != 2 {
		t.Errorf("after a list that was refused (%v) the next call waits", err)
	}
	for _, first := range []string{"resources/list", "resources/read", "a reading tool"} {
		g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Plan: true})
		r := requests[first]
		r.Number = 1
		if _, err := g.Do(t.Context(), r); err != nil {
			t.Errorf("%s: %v", first, err)
		}
		if g.planner.order.next != 2 {
			t.Errorf("after %s the next call waits", first)
		}
	}
}

// TestAPlanHasTheOrderOfTheCode, in whatever order its calls come.
func TestAPlanHasTheOrderOfTheCode(t *testing.T) {
	g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Plan: true})
	do := func(number int) error {
		r := requests["tools/call"]
		r.Arguments, r.Number = fmt.Appendf(nil, `{"n":%d}`, number), number
		defer g.Settled(number)
		_, err := g.Do(t.Context(), r)
		return err
	}
	var later errgroup.Group
	for _, number := range []int{3, 2} {
		later.Go(func() error { return do(number) })
	}
	if err := errors.Join(do(1), later.Wait()); err != nil {
		t.Fatal(err)
	}
	for i, c := range g.Plan().Calls {
		if want := fmt.Sprintf(`{"n":%d}`, i+1); string(c.Arguments) != want {
			t.Errorf("the plan has %s, want %s", c.Arguments, want)
		}
	}
}

func TestServersThatWereUsedAreNamedOnce(t *testing.T) {
	g := New(Options{})
	g.NoteUsed("a")
	g.NoteUsed("b")
	g.NoteUsed("a")
	if got := strings.Join(g.Used(), " "); got != "a b" {
		t.Errorf("used: %s", got)
	}
	for err, want := range map[error]bool{consent.ErrStopped: true, fmt.Errorf("x: %w", consent.ErrExpired): true, consent.ErrDenied: false, nil: false} {
		if IsStopped(err) != want {
			t.Errorf("stopped by %v: %v", err, !want)
		}
	}
}
