package mcpproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestWhatAServerWroteIsKept while it runs and after its end, without secrets and escapes; and why it
// does not run.
func TestWhatAServerWroteIsKept(t *testing.T) {
	s := fake(t, "FAKE_SECRET", "hunter2hunter2")
	s.Command, s.Args = "/bin/sh", append([]string{"-c", `printf 'hello\033[2J\nkey %s\n' "$FAKE_SECRET" >&2; exec "$0" "$@"`, s.Command}, s.Args...)
	broken := config.Server{Name: "broken", Command: "/bin/sh", Args: []string{"-c", "echo no licence >&2; exit 3"}, Source: "test.json"}
	p := proxyFor(t, Options{}, s, broken)
	if log, ok := p.ServerLog("fake"); !ok || log.Running || !log.Since.IsZero() || log.Lines != nil {
		t.Errorf("before its start: %+v, %t", log, ok)
	}
	if _, ok := p.ServerLog("other"); ok {
		t.Error("there is another server")
	}
	if _, err := p.Tools(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	wrote := func(running bool) {
		t.Helper()
		for t.Context().Err() == nil {
			log, _ := p.ServerLog("fake")
			if log.Running != running || len(log.Lines) < 2 {
				continue
			}
			if log.Lines[0] != "hello" || !strings.HasPrefix(log.Lines[1], "key ") || strings.Contains(strings.Join(log.Lines, ""), "hunter2") || log.Since.IsZero() {
				t.Errorf("running %t: %+v", running, log)
			}
			return
		}
	}
	wrote(true)
	if _, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "crash"}); err == nil {
		t.Fatal("it did not crash")
	}
	wrote(false)
	if _, err := p.Tools(t.Context(), "broken"); err == nil {
		t.Fatal("it started")
	}
	if log, _ := p.ServerLog("broken"); log.Running || !slices.Equal(log.Lines, []string{"no licence"}) || !strings.Contains(log.Failure, "exit status 3") || strings.Contains(log.Failure, "licence") {
		t.Errorf("%+v", log)
	}
}
