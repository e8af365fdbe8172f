package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestAToolThatIsCalledLikeAReadIsNotAllowedByIt, nor the other way around.
func TestAToolThatIsCalledLikeAReadIsNotAllowedByIt(t *testing.T) {
	call := Request{Method: mcpproxy.CallTool, Server: "up", Name: "resources/read", Arguments: json.RawMessage("{}"), Unchecked: true}
	read := requests["resources/read"]
	for _, c := range []struct {
		requests []Request
		asked    int
	}{{[]Request{read, read}, 1}, {[]Request{read, call}, 2}, {[]Request{call, read}, 2}, {[]Request{call, call}, 1}} {
		user := newUser(t, always(consent.ForRun))
		g := New(Options{
			Upstreams: newUpstream(t, "resources/read").Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = ['*']\n"), Taint: &consent.Taint{}, Asker: user.Asker,
		})
		for _, r := range c.requests {
			if _, err := g.Do(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if len(user.asked) != c.asked {
			t.Errorf("%v: asked %d times, want %d", c.requests, len(user.asked), c.asked)
		}
	}
}

// TestPrivateReadsAreAskedForWhereHostsCanBeReached, and what goes to others after one.
func TestPrivateReadsAreAskedForWhereHostsCanBeReached(t *testing.T) {
	const private, open = "private = true", "open = true"
	hosts := []string{"https://a.example"}
	read := func() *consent.Taint {
		taint := &consent.Taint{}
		taint.Add("bank.accounts")
		return taint
	}
	for name, c := range map[string]struct {
		rule  string
		hosts []string
		taint *consent.Taint
		asked string // why
	}{
		"private, and hosts":         {private, hosts, &consent.Taint{}, `what is read from server "up" is private, and this run can reach https://a.example`},
		"private, and no hosts":      {private, nil, &consent.Taint{}, ""},
		"not private":                {"", hosts, read(), ""},
		"open, after a private read": {open, nil, read(), `bank.accounts; what is sent to server "up" may get to others`},
		"open, before one":           {open, nil, &consent.Taint{}, ""},
	} {
		for kind, r := range requests {
			user := newUser(t, always(consent.ForCall))
			g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\n"+c.rule), Taint: c.taint, Asker: user.Asker, Hosts: c.hosts})
			if _, err := g.Do(t.Context(), r); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			var why []string
			for _, q := range user.asked {
				why = append(why, q.Calls[0].Reasons...)
			}
			if got := strings.Join(why, "\n"); (got == "") != (c.asked == "") || !strings.Contains(got, c.asked) {
				t.Errorf("%s, %s: asked because %q, want %q", name, kind, got, c.asked)
			}
		}
	}
}

// TestErrorsOfPrivateServersCountAsRead, also of one that gave nothing else.
func TestErrorsOfPrivateServersCountAsRead(t *testing.T) {
	s := config.Server{Name: "up", Alias: "up", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", "echo no license for Ada Lovelace >&2; exit 3"}}
	for kind, r := range requests {
		p := mcpproxy.New(config.Config{Servers: []config.Server{s}}, mcpproxy.Options{})
		taint := &consent.Taint{}
		g := New(Options{Upstreams: p, Granted: granted, Policy: policyIn(t, "[servers.up]\nprivate = true\n"), Taint: taint})
		if _, err := g.Do(t.Context(), r); err == nil {
			t.Fatal("no error")
		}
		if got := taint.Reads(); !slices.Equal(got, []string{"up.error"}) {
			t.Errorf("%s: read %v", kind, got)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatIsReadFromPrivateServersIsMarked before the code gets it.
func TestWhatIsReadFromPrivateServersIsMarked(t *testing.T) {
	for kind, r := range requests {
		taint := &consent.Taint{}
		g := New(Options{Upstreams: newUpstream(t).Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nprivate = true\n"), Taint: taint})
		if _, err := g.Do(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if fresh := New(Options{Taint: &consent.Taint{}}); fresh.HasRead() || !g.HasRead() {
			t.Errorf("%s: whether something was read is wrong", kind)
		}
		if len(taint.Reads()) != 1 {
			t.Errorf("%s: read %v", kind, taint.Reads())
		}
	}
}
