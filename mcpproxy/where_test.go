package mcpproxy

import (
	"errors"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// TestOnlyUnusualPlacesAreTold: by default a server of the user's own files runs on the host, that of a
// project in a sandbox, and one with an address elsewhere.
func TestOnlyUnusualPlacesAreTold(t *testing.T) {
	own, project, remote := config.Server{Name: "own"}, config.Server{Name: "project", Project: true}, config.Server{Name: "remote", URL: "https://x", Project: true}
	for _, tt := range []struct {
		server      config.Server
		where, want string
	}{
		{own, OnHost, ""},
		{own, InSandbox, InSandbox},
		{project, InSandbox, ""},
		{project, OnHost, OnHost},
		{remote, Remote, ""},
	} {
		if got := (Facts{Server: tt.server, Where: tt.where}).Unusual(); got != tt.want {
			t.Errorf("%s on %q: %q, want %q", tt.server.Name, tt.where, got, tt.want)
		}
	}
}

// TestWhatIsAllowedOfASandboxStaysThere: a request that was decided on while the server was in a sandbox
// is not sent to it on the host, and what was allowed of one is not allowed of the other.
func TestWhatIsAllowedOfASandboxStaysThere(t *testing.T) {
	boxed, asked := false, 0
	p := proxyFor(t, Options{
		Launch: func(config.Server) (stdio.Launcher, error) {
			if boxed {
				return stdio.OnHost(nil), nil
			}
			return nil, nil
		},
		Sandboxed: func() func(config.Server) bool { asked++; return func(config.Server) bool { return boxed } },
	}, fake(t))
	prepare := func() *Prepared {
		t.Helper()
		prepared, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "echo"})
		if err != nil {
			t.Fatal(err)
		}
		return prepared
	}
	onHost := prepare().Facts()
	boxed = true
	if where := prepare().Facts().Where; where != OnHost {
		t.Errorf("a server that runs on the host is said to be %s", where)
	}
	u := p.current().upstreams[0]
	u.expire(u.live)
	inSandbox := prepare()
	if facts := inSandbox.Facts(); facts.Where != InSandbox || facts.Identity() == onHost.Identity() || p.Servers()[0].Where != InSandbox {
		t.Errorf("in a sandbox: %+v, identity %s", facts, facts.Identity())
	}
	list, err := p.Prepare(t.Context(), "fake", Want{Method: ListPrompts})
	if err != nil {
		t.Fatal(err)
	}
	boxed = false
	for _, prepared := range []*Prepared{inSandbox, list} {
		if _, err := prepared.Send(t.Context(), []byte("{}"), nil, nil); !errors.Is(err, ErrChanged) || prepared.Sent() {
			t.Errorf("%s, on the host: %v, sent: %v", prepared.Facts().Method, err, prepared.Sent())
		}
	}
	before := asked
	if _, err := prepare().Send(t.Context(), []byte("{}"), nil, nil); err != nil {
		t.Errorf("decided on anew: %v", err)
	}
	if asked != before {
		t.Errorf("a call to a server that runs looked up %d times where it would start", asked-before)
	}
}
