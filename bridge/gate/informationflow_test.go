package gate

import (
	"encoding/json"
	"slices"
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
		if len(taint.Reads()) != 1 {
			t.Errorf("%s: read %v", kind, taint.Reads())
		}
	}
}
