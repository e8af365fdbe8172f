package run

import (
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestStartingServersIsNotTheCodesTime: code that waits for a server longer than it may
// run gets an error that says to call again, and goes on.
func TestStartingServersIsNotTheCodesTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	proxy := mcpproxy.New(config.Config{Servers: []config.Server{{
		Name: "slow", Alias: "slow", Transport: config.Stdio, Command: "/bin/sleep", Args: []string{"600"},
	}}}, mcpproxy.Options{})
	t.Cleanup(func() { proxy.Close() })
	const timeout, patience = 4 * time.Second, 5 * time.Second
	s := newServer(t, nil, func(o *Options) { o.Upstreams, o.StartTimeout = proxy, patience })
	r := s.Do(t.Context(), Request{Timeout: timeout, Servers: []string{"slow"}, Code: `
try: await mcp_slow.f()
except Exception as e: print(type(e).__name__, e)`})
	got := strings.Join(r.Stdout, "\n")
	for _, want := range []string{`MCPError server "slow" is still starting (`, "call again"} {
		if r.Status != StatusSuccess || !strings.Contains(got, want) {
			t.Errorf("%s: %s\n%q, want %q", r.Status, r.Error, got, want)
		}
	}
	if st := proxy.Servers()[0]; st.Status != config.StatusStarting {
		t.Errorf("afterwards the server is %s", st.Status)
	}
}
