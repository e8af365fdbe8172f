package mcpproxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// TestLaunchIsAskedAtEachStart: a start that it refuses is no crash, and works as soon as it no
// longer refuses. A nil launcher is this host.
func TestLaunchIsAskedAtEachStart(t *testing.T) {
	refuses, launched := errors.New("no sandbox can be made here: user-namespaces"), ""
	var launch stdio.Launcher
	p := proxyFor(t, Options{Launch: func(s config.Server) (stdio.Launcher, error) { return launch, refuses }}, fake(t))
	for range 4 { // after as many crashes, no start would be tried
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
		if want := `starting server "fake": ` + refuses.Error(); err == nil || err.Error() != want || !errors.Is(err, refuses) {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	if st := p.Servers()[0]; st.Status != "failed" || !strings.Contains(st.Error, refuses.Error()) {
		t.Errorf("its status is %+v", st)
	}
	refuses = nil
	mustCall(t, p, "echo", `{}`)
	launch = func(ctx context.Context, s config.Server) (*stdio.Launched, error) {
		launched = s.Name
		return stdio.OnHost(nil)(ctx, s)
	}
	p.current().upstreams[0].expire(p.current().upstreams[0].live)
	if mustCall(t, p, "echo", `{}`); launched != "fake" {
		t.Errorf("it launched %q", launched)
	}
}

// TestLaunchIsNotAskedForARemoteServer, which runs elsewhere.
func TestLaunchIsNotAskedForARemoteServer(t *testing.T) {
	p := proxyFor(t, Options{
		Launch:    func(config.Server) (stdio.Launcher, error) { return nil, errors.New("asked") },
		Sandboxed: func(config.Server) bool { return true },
	}, web(t, config.HTTP, answers(func(w http.ResponseWriter, r *http.Request) {})))
	if _, err := p.Tools(t.Context(), "fake"); err != nil {
		t.Error(err)
	}
	if where := p.Servers()[0].Where; where != Remote {
		t.Errorf("it runs %q", where)
	}
}

// TestServersSayWhereTheyRun, and those that were left out do not.
func TestServersSayWhereTheyRun(t *testing.T) {
	boxed := fake(t)
	boxed.Name, boxed.Alias = "boxed", "boxed"
	p := New(config.Config{
		Servers: []config.Server{fake(t), boxed}, Problems: []config.Problem{{Server: "bad", Reason: "no command"}},
	}, Options{Sandboxed: func(s config.Server) bool { return s.Name == "boxed" }})
	defer p.Close()
	got := map[string]string{}
	for _, st := range p.Servers() {
		got[st.Name] = st.Where
	}
	if got["fake"] != OnHost || got["boxed"] != InSandbox || got["bad"] != "" || len(got) != 3 {
		t.Errorf("they run %v", got)
	}
}
