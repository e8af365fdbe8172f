package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

// knownTools has tools of a server be known from an earlier process, as JSON.
func knownTools(t *testing.T, dir string, s config.Server, tools ...string) {
	t.Helper()
	b := catalog.NewBuilder(slog.New(slog.DiscardHandler))
	for _, tool := range tools {
		if _, err := b.Add(t.Context(), []json.RawMessage{json.RawMessage(tool)}); err != nil {
			t.Fatal(err)
		}
	}
	catalog.NewRecord(s, catalog.Store{Dir: dir, Log: slog.New(slog.DiscardHandler)}).Put(b.Definitions(), 0)
}

// pageOf returns what fills in pages, with a server whose tools are known, one that is left out and one
// that lacks a value. No server can start.
func pageOf(t *testing.T) (o uiOptions, printed func(do func(Options) error) string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("NO_SUCH_TOKEN", "")
	t.Chdir(home)
	o.Options, _ = newOptions(t)
	s := &o.Settings
	s.Image = "host"
	s.Servers = putFile(t, home+"/servers.json", `{"mcpServers": {
		"tracker": {"command": "/nowhere/tracker", "env": {"API_TOKEN": "4f9d-secret-81c2"}},
		"web": {"type": "ws", "url": "https://x.example"},
		"mail": {"command": "mail", "env": {"TOKEN": "${NO_SUCH_TOKEN}"}}}}`, 0o644)
	s.Proxy.CatalogDir, s.Proxy.PinDir = filepath.Join(home, "catalog"), filepath.Join(home, "pins")
	o.again = func() (Options, error) { return o.Options, nil }
	tracker := discoverServers(*s, slog.New(slog.DiscardHandler)).config.Servers[0]
	create := `{"name":"create_issue","description":"Creates an issue with 4f9d-secret-81c2. %s","inputSchema":{"type":"object","properties":{"title":{"type":"string"}}}}`
	now := []string{fmt.Sprintf(create, "It is new. "+strings.Repeat("More of it. ", 100)), `{"name":"close_issue","description":"Closes one","inputSchema":{"type":"object"}}`}
	pinTools(t, pins.Store{Dir: s.Proxy.PinDir}, tracker, fmt.Sprintf(create, "It is old."))
	pinTools(t, pins.Store{Dir: s.Proxy.PinDir}, tracker, now...)
	knownTools(t, s.Proxy.CatalogDir, tracker, now...)
	return o, func(do func(Options) error) string {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		again, _ := newOptions(t)
		again.Settings, again.Out, again.JSON = o.Settings, out, true
		if err := do(again); err != nil {
			t.Log(err) // such as doctor's code
		}
		return read(t, out)
	}
}

// rowsOf are the rows that a command prints as JSON.
func rowsOf[T any](t *testing.T, text string) (rows []T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	return rows
}

// TestPageHasTheServersOfTheCommands: those of servers list, servers search and servers pins.
func TestPageHasTheServersOfTheCommands(t *testing.T) {
	o, printed := pageOf(t)
	view, err := o.servers(t.Context(), "create an issue")
	if err != nil || view.Problem != "" || len(view.Unknown) > 0 {
		t.Fatalf("%+v, %v", view, err)
	}
	listed := rowsOf[mcpproxy.ServerStatus](t, printed(func(o Options) error { return serversFunc(serversList).run(t.Context(), o) }))
	if len(listed) != 3 || len(view.Servers) != len(listed) {
		t.Fatalf("%d servers, want %d", len(view.Servers), len(listed))
	}
	for i, st := range listed {
		row := view.Servers[i]
		if row.Name != st.Name || row.Status != st.Status || row.Transport != string(st.Transport) || row.Source != st.Source || row.Tools != st.Tools || !strings.HasPrefix(row.Remark, remark(st)) {
			t.Errorf("%+v, want %+v", row, st)
		}
	}
	if row := view.Servers[0]; !row.Known || row.Tokens < 250 || row.Tokens > 500 || !strings.Contains(row.Remark, "1 changed, 1 added since ") {
		t.Errorf("%+v", row)
	}
	for i, d := range rowsOf[serverTool](t, printed(func(o Options) error {
		o.Args = []string{"create an issue"}
		return serversFunc(serversSearch).run(t.Context(), o)
	})) {
		if found := view.Found[i]; found.Server != d.Server || found.Tool != d.Tool || found.Score != d.Score || !strings.HasPrefix(found.Signature, d.Tool+"(") {
			t.Errorf("%+v, want %+v", found, d)
		}
	}
	if view, _ := o.servers(t.Context(), "?"); !strings.Contains(view.Problem, "the query is empty") {
		t.Errorf("a search for nothing: %+v", view)
	}
}

// TestPageOfAServer: its tools and the changes to them, without secrets, and what can be typed.
func TestPageOfAServer(t *testing.T) {
	o, _ := pageOf(t)
	view, err := o.server(t.Context(), "tracker")
	if err != nil || view == nil {
		t.Fatal(view, err)
	}
	said := fmt.Sprintf("%+v", *view) + fmt.Sprintf("%+v", *view.Pins)
	for _, want := range []string{
		"create_issue(title: str = None)", "close_issue(", "[hidden:API_TOKEN]", "-Creates an issue", "It is old.\n", "+", "It is new.",
		"toolcell servers pins accept tracker create_issue", "toolcell servers check tracker",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	if strings.Contains(said, "4f9d-secret") || len(view.Docs) != 2 || len(view.Docs[0].Full) < 1000 || view.Docs[1].Full != "" {
		t.Errorf("%s", said)
	}
	if view, err := o.server(t.Context(), "mail"); err != nil || view.Known || len(view.Commands) != 1 || view.Commands[0].Text != "toolcell servers set mail NO_SUCH_TOKEN" {
		t.Errorf("a server without a value: %+v, %v", view, err)
	}
	if view, err := o.server(t.Context(), "web"); err != nil || len(view.Commands) > 0 || view.Remark == "" {
		t.Errorf("a server that is left out: %+v, %v", view, err)
	}
	if view, err := o.server(t.Context(), "none"); view != nil || err != nil {
		t.Errorf("no server: %+v, %v", view, err)
	}
}

// TestPageSaysWhichFileIsBroken: the servers', the policy or the settings.
func TestPageSaysWhichFileIsBroken(t *testing.T) {
	o, _ := pageOf(t)
	putFile(t, o.Settings.Servers, "{", 0o644)
	putFile(t, filepath.Dir(o.Settings.Servers)+"/.config/toolcell/policy.toml", "default = nonsense", 0o644)
	view, err := o.servers(t.Context(), "")
	if said := strings.Join(view.Notes, "\n"); err != nil || !strings.Contains(said, "servers.json: ") || !strings.Contains(said, "nothing may be called until the policy is fixed") {
		t.Errorf("%q, %v", said, err)
	}
	wrong := errors.New("config.toml is broken")
	o.again = func() (Options, error) { return Options{}, wrong }
	if _, err := o.servers(t.Context(), ""); !errors.Is(err, wrong) {
		t.Errorf("the servers: %v", err)
	}
}

// TestCommandsAboutAServer: those that help it, of its state.
func TestCommandsAboutAServer(t *testing.T) {
	for want, st := range map[string]mcpproxy.ServerStatus{
		"toolcell servers login 'my mail' toolcell servers check 'my mail'": {Name: "my mail", Alias: "mail", Status: "failed", Error: remote.LoginNeeded("my mail")},
		"toolcell servers trust '/a b/.mcp.json'":                           {Name: "x", Status: config.StatusUntrusted, Source: "/a b/.mcp.json"},
		"": {Name: "x", Status: config.StatusDisabled},
	} {
		var got []string
		for _, c := range (knownServers{}).commands(st) {
			got = append(got, c.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %q", st, got, want)
		}
	}
}
