package edit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestFileOfATarget is the user's or the project's, and one that the client has if there is any.
func TestFileOfATarget(t *testing.T) {
	for name, tt := range map[string]struct {
		client  string
		project bool
		files   map[string]string
		want    string
	}{
		"the user's":                 {"claude-code", false, nil, "home/.claude.json"},
		"by the name in servers":     {"claude", false, nil, "home/.claude.json"},
		"the project's":              {"claude-code", true, nil, "project/.mcp.json"},
		"the project's second":       {"amp", true, map[string]string{"project/.amp/settings.jsonc": "{}"}, "project/.amp/settings.jsonc"},
		"the first":                  {"vscode", false, nil, "home/.config/Code/User/mcp.json"},
		"the one that is there":      {"vscode", false, map[string]string{"home/.config/VSCodium/User/mcp.json": "{}"}, "home/.config/VSCodium/User/mcp.json"},
		"the one whose folder is":    {"vscode", false, map[string]string{"home/.config/VSCodium/User/x": ""}, "home/.config/VSCodium/User/mcp.json"},
		"a file goes before folders": {"vscode", false, map[string]string{"home/.config/Code/User/x": "", "home/.config/VSCodium/User/mcp.json": "{}"}, "home/.config/VSCodium/User/mcp.json"},
	} {
		o := mcptest.Site(t, tt.files)
		p, err := TargetOf(o, tt.client, tt.project)
		if err != nil || p.File != filepath.Join(filepath.Dir(o.Home), tt.want) || p.Project != tt.project {
			t.Errorf("%s: %s, %v, want %s", name, p.File, err, tt.want)
		}
	}
}

// TestTargetWithoutAFile says what is missing. A file of a project needs no home.
func TestTargetWithoutAFile(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"XDG_CONFIG_HOME": "/x"}[name] }
	for name, tt := range map[string]struct {
		o       clientconfig.Options
		client  string
		project bool
		want    string
	}{
		"no file of a project": {clientconfig.Options{Home: "/h", Dir: "/p"}, "windsurf", true, "Windsurf has no config file in a project"},
		"no project":           {clientconfig.Options{Home: "/h"}, "cursor", true, "no working directory"},
		"no home":              {clientconfig.Options{Dir: "/p"}, "cursor", false, "set HOME"},
		"no home but settings": {clientconfig.Options{Dir: "/p", Getenv: getenv}, "claude-desktop", false, "set HOME"},
	} {
		_, err := TargetOf(tt.o, tt.client, tt.project)
		t.Run(name, func(t *testing.T) { mcptest.WantError(t, err, tt.want) })
	}
	if p, err := TargetOf(clientconfig.Options{Dir: "/p"}, "cursor", true); err != nil || p.File != "/p/.cursor/mcp.json" {
		t.Errorf("a project without a home: %s, %v", p.File, err)
	}
}

// writeProgram makes a file that can be started.
func writeProgram(t *testing.T, path string) {
	t.Helper()
	mcptest.WriteFile(t, path, "")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestDetectedIsWhatTheMachineHas of a client: a file, a folder or its program. The home
// directory, in which Claude Code has its file, says nothing.
func TestDetectedIsWhatTheMachineHas(t *testing.T) {
	for name, tt := range map[string]struct {
		client, file, program string
		want                  bool
	}{
		"nothing":                   {"claude-code", "home/x", "", false},
		"its file":                  {"claude-code", "home/.claude.json", "", true},
		"its folder":                {"claude-code", "home/.claude/x", "", true},
		"its program":               {"claude-code", "home/x", "claude", true},
		"another's program":         {"claude-code", "home/x", "cursor", false},
		"the folder of its file":    {"cursor", "home/.cursor/x", "", true},
		"a file for a folder":       {"cursor", "home/.cursor", "", false},
		"no program, nothing there": {"claude-desktop", "home/x", "", false},
	} {
		o := mcptest.Site(t, map[string]string{tt.file: ""})
		bin := t.TempDir()
		t.Setenv("PATH", bin)
		if tt.program != "" {
			writeProgram(t, filepath.Join(bin, tt.program))
		}
		p, err := TargetOf(o, tt.client, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Detected(); got != tt.want {
			t.Errorf("%s: detected: %v", name, got)
		}
	}
}

// TestOlderFileIsOfTheSameClient: VS Code's settings have servers of Amp too, which stay.
func TestOlderFileIsOfTheSameClient(t *testing.T) {
	o := mcptest.Site(t, nil)
	for client, project := range map[string]bool{"cursor": false, "vscode": true} {
		p, err := TargetOf(o, client, project)
		if err != nil {
			t.Fatal(err)
		}
		if older, ok := p.Older(); ok {
			t.Errorf("%s has an older file %s", client, older.File)
		}
	}
	p, err := TargetOf(o, "vscode", false)
	if err != nil {
		t.Fatal(err)
	}
	older, ok := p.Older()
	if !ok || older.File != filepath.Join(filepath.Dir(p.File), "settings.json") || older.MovedFile() == p.MovedFile() {
		t.Fatalf("%v, %s", ok, older.File)
	}
	const text = `{"mcp": {"inputs": [{"id": "key"}, {"id": "key", "type": "x"}], "servers": {"a": {"command": "x"}}}, "amp.mcpServers": {"b": {"command": "y"}}}`
	if _, others, err := older.Others([]byte(text)); others != 1 || err != nil {
		t.Errorf("%d others, %v", others, err)
	}
	rest, moved, err := older.MoveOut([]byte(text), []byte(`{"mcp": {"inputs": [{"id": "mine"}]}}`), map[string][]string{"": {"a"}})
	const want = `{"mcp": {"inputs": [{"id":"mine"}, {"id":"key"}],
  "servers": {
    "a": {
      "command": "x"
    }
  }
}}`
	if err != nil || string(rest) != `{"mcp": {"inputs": [{"id": "key"}, {"id": "key", "type": "x"}], "servers": {}}, "amp.mcpServers": {"b": {"command": "y"}}}` {
		t.Errorf("%v, left is\n%s", err, rest)
	}
	if string(moved) != want {
		t.Errorf("moved is\n%s\nwant\n%s", moved, want)
	}
}

// TestOpenCodeHasServersInTwoPlaces: "mcp" has them, or has "servers" with them. A server may
// be called that.
func TestOpenCodeHasServersInTwoPlaces(t *testing.T) {
	for text, want := range map[string]string{
		`{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}`:                          "mcp servers",
		`{"mcp": {"servers": {"type": "local", "command": ["x"]}}}`:                                 "mcp",
		`{"mcp": {"servers": {"type": "remote", "url": "http://x"}}}`:                               "mcp",
		`{"mcp": {"a": {"type": "local", "command": ["x"]}}}`:                                       "mcp",
		`{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}, "b": {"command": ["y"]}}}`: "mcp servers",
	} {
		out, put, err := targetOf(t, "opencode").Install([]byte(text), Entry{Command: "/opt/toolcell"})
		if err != nil || put.Did != Added {
			t.Errorf("%s: %+v, %v", text, put, err)
			continue
		}
		doc, err := newDocument("c.json", out)
		if err != nil {
			t.Fatal(err)
		}
		within := map[string][]string{"mcp": {"mcp", "toolcell"}, "mcp servers": {"mcp", "servers", "toolcell"}}[want]
		if !doc.has(within...) {
			t.Errorf("it is not in %s of\n%s", want, out)
		}
	}
}
