package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// shown returns what a command prints about the servers of p.
func shown(t *testing.T, do serversFunc, p *mcpproxy.Proxy, asJSON bool) string {
	t.Helper()
	o, _ := newOptions(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o.Out, o.JSON = out, asJSON
	if err := do(t.Context(), o, p); err != nil {
		t.Log(err) // such as the code of check
	}
	return read(t, out)
}

// TestListSaysWhereServersRun: in the table only of those that are in a sandbox.
func TestListSaysWhereServersRun(t *testing.T) {
	p := mcpproxy.New(config.Config{Servers: []config.Server{
		{Name: "boxed", Transport: config.Stdio, Command: "true"},
		{Name: "plain", Transport: config.Stdio, Command: "true"},
		{Name: "web", Transport: config.HTTP, URL: "https://mcp.example"},
	}}, mcpproxy.Options{Sandboxed: func() func(config.Server) bool { return func(s config.Server) bool { return s.Name == "boxed" } }})
	defer p.Close()
	if got, want := strings.Fields(shown(t, serversList, p, false)), "NAME STATUS TRANSPORT SOURCE REMARK boxed idle stdio, sandboxed plain idle stdio web idle http"; strings.Join(got, " ") != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
	var where []string
	for _, st := range rowsOf[mcpproxy.ServerStatus](t, shown(t, serversList, p, true)) {
		where = append(where, st.Name+" "+st.Where)
	}
	if got := strings.Join(where, ", "); got != "boxed sandboxed, plain host, web remote" {
		t.Errorf("in JSON: %s", got)
	}
}

// TestCheckSaysWhatTheLauncherKnows, in the line of the server.
func TestCheckSaysWhatTheLauncherKnows(t *testing.T) {
	launch := func(ctx context.Context, s config.Server) (*stdio.Launched, error) {
		l, err := stdio.OnHost(nil)(ctx, s)
		if err == nil {
			l.Explain = func(time.Time) string { return "it tried to reach a.example\nand b.example" }
		}
		return l, err
	}
	s := config.Server{Name: "dead", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", "exit 1"}, Dir: "/"}
	p := mcpproxy.New(config.Config{Servers: []config.Server{s}}, mcpproxy.Options{Launch: func(config.Server) (stdio.Launcher, error) { return launch, nil }})
	defer p.Close()
	if got, want := strings.Join(strings.Fields(shown(t, serversCheck, p, false)), " "), "exited: exit status 1; it tried to reach a.example; and b.example"; !strings.HasSuffix(got, want) {
		t.Errorf("it says %s", got)
	}
}
