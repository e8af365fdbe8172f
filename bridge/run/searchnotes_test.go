package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestResultSaysWhatASearchLeftOut, once for all runs.
func TestResultSaysWhatASearchLeftOut(t *testing.T) {
	failing := config.Server{Name: "broken", Alias: "broken", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", "exit 3"}}
	up := mcpproxy.New(config.Config{Servers: []config.Server{failing}}, mcpproxy.Options{})
	t.Cleanup(func() { _ = up.Close() })
	s := newServer(t, nil, func(o *Options) { o.Upstreams = up })
	for _, want := range []string{`the search of tools left out "broken" (`, ""} {
		r := runCode(t, s, "from mcp import runtime\nawait runtime.search_tool_docs('x')\nprint('done')")
		notes := strings.Join(r.Notes, "\n")
		if r.Status != StatusSuccess || want == "" && strings.Contains(notes, "left out") || !strings.Contains(notes, want) {
			t.Errorf("%s, notes %q, want %q", r.Status, notes, want)
		}
	}
}

func TestARunLooksForServersOnce(t *testing.T) {
	up, looked := fakeUpstreams{"up": {"echo": func(context.Context, json.RawMessage) (string, error) { return "1", nil }}}, 0
	s := newServer(t, nil, func(o *Options) {
		o.Upstreams = up.Proxy(t, bridgetest.Options{Proxy: mcpproxy.Options{Refresh: func(func(config.Config)) { looked++ }}})
	})
	r := s.Do(t.Context(), Request{Code: "for _ in range(5):\n    await mcp_up.echo()", Servers: []string{"*"}})
	if r.Status != StatusSuccess || looked != 1 {
		t.Errorf("%s: %q; looked %d times", r.Status, r.Error, looked)
	}
}
