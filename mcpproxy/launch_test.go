package mcpproxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

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
		Sandboxed: func() func(config.Server) bool { return func(config.Server) bool { return true } },
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
	}, Options{Sandboxed: func() func(config.Server) bool { return func(s config.Server) bool { return s.Name == "boxed" } }})
	defer p.Close()
	got := map[string]string{}
	for _, st := range p.Servers() {
		got[st.Name] = st.Where
	}
	if got["fake"] != OnHost || got["boxed"] != InSandbox || got["bad"] != "" || len(got) != 3 {
		t.Errorf("they run %v", got)
	}
}

// TestErrorsSayWhatTheLauncherKnows, for those who may call the server: errors in our words, not
// results in the server's.
func TestErrorsSayWhatTheLauncherKnows(t *testing.T) {
	const knows = "it tried to reach \x1b[31mevil.example\x1b[0m, not allowed\n\nand 7 others\n"
	const said = "\nit tried to reach evil.example, not allowed\nand 7 others"
	launch := func(config.Server) (stdio.Launcher, error) {
		return func(ctx context.Context, s config.Server) (*stdio.Launched, error) {
			before := time.Now()
			l, err := stdio.OnHost(nil)(ctx, s)
			if err == nil {
				l.Explain = func(since time.Time) string {
					if since.Before(before.Add(-time.Minute)) || since.After(time.Now()) {
						t.Errorf("it asks about the time since %v", since)
					}
					return knows + strings.Repeat("x\n", 10_000)
				}
			}
			return l, err
		}, nil
	}
	for _, tt := range []struct {
		name, tool string
		env        []string
		want       string
	}{
		{"exit", "crash", nil, "out of cheese, token is"},
		{"error of the protocol", "refuse", nil, "bad arguments"},
		{"no answer", "hang", nil, "no answer within 1s"},
		{"failed start", "echo", []string{"FAKE_DIE_AT_START", "1"}, "; its stderr ended: API_KEY is missing"},
		{"tools that cannot be listed", "echo", []string{"FAKE_TOOLS", "broken"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := proxyFor(t, Options{Launch: launch, CallTimeout: time.Second}, fake(t, tt.env...))
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tt.tool})
			if err == nil || !strings.Contains(err.Error(), tt.want+said) || !strings.HasSuffix(err.Error(), said+"\nx") {
				t.Fatalf("%v\nwant %s%s and a line x", err, tt.want, said)
			}
			if !SaidByServer(err) {
				t.Error("its names do not count as the server's")
			}
			if short := WithoutOutput(err); strings.Contains(short.Error(), "evil") || !errors.Is(short, err) {
				t.Errorf("without them: %v", short)
			}
		})
	}
	p := proxyFor(t, Options{Launch: launch}, fake(t))
	if got := mustCall(t, p, "fail", `{}`); !strings.Contains(got, "no such issue") || strings.Contains(got, "evil") {
		t.Errorf("the result of a tool that failed: %s", got)
	}
	if got := p.Refused("fake", time.Now()); !strings.HasPrefix(got, said[1:]+"\n") {
		t.Errorf("what its sandbox has refused: %q", got)
	}
	if got := p.Refused("no such server", time.Now()); got != "" {
		t.Errorf("of no server: %q", got)
	}
}
