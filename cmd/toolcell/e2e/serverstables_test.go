package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// TestServersTablesFitTheTerminal: at any width no line is longer, and the JSON
// of the same command is whole.
func TestServersTablesFitTheTerminal(t *testing.T) {
	h := firstHost(t)
	config := fakeConfig(t, map[string]any{"broken": map[string]any{"command": "/no/such/program/anywhere/on/this/host"}})
	for _, tt := range []struct {
		args []string
		want string // a cell, whole
		code int
	}{
		{[]string{"servers", "list"}, "github", 0},
		{[]string{"servers", "tools", "github"}, "create_issue", 0},
		{[]string{"servers", "search", "create", "an", "issue"}, "create_issue", 0},
		{[]string{"servers", "check", "github", "broken"}, "failed", 1},
	} {
		for _, width := range []uint16{50, 100} {
			e := env{"MCP_SERVERS_CONFIG": config, "TERM": "xterm", "NO_COLOR": "1"}
			p := atTerminal(t, h.command(t, e, tt.args...), width)
			if code := p.leaves(); code != tt.code {
				t.Errorf("%v: exit code %d", tt.args, code)
			}
			p.sees(tt.want)
			for line := range strings.Lines(p.screen.String()) {
				line = strings.TrimRight(line, "\r\n")
				if n := uniseg.StringWidth(line); n > int(width) && !strings.HasPrefix(line, "toolcell: ") {
					t.Errorf("%v in %d columns: a line of %d: %q", tt.args, width, n, line)
				}
			}
		}
		out, errs, code := h.run(t, env{"MCP_SERVERS_CONFIG": config}, append(tt.args, "--json")...)
		var rows []map[string]any
		if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) == 0 || code != tt.code || strings.Contains(out, "…") {
			t.Errorf("%v --json: exit %d, %v\n%s%s", tt.args, code, err, out, errs)
		}
	}
}

// TestJSONEverywhere: each command that shows something prints an array of
// objects if asked to, and nothing else on standard output.
func TestJSONEverywhere(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["MCP_BRIDGE_IMAGE"] = "host"
	e["MCP_SERVERS_CONFIG"] = writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"asks":   map[string]any{"command": "x", "env": map[string]string{"TOKEN": "${TOKEN}"}},
		"remote": map[string]any{"url": "http://127.0.0.1:1/"},
	}})
	file := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"theirs": {"command": "x"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	h.must(t, e, "exec", "-c", "1")
	for _, tt := range []struct {
		args []string
		key  string
	}{
		{[]string{"version"}, "version"},
		{[]string{"doctor"}, "code"},
		{[]string{"images", "list"}, ""},
		{[]string{"tools", "list"}, ""},
		{[]string{"servers", "list"}, "name"},
		{[]string{"servers", "trust", file}, "trusted"},
		{[]string{"servers", "untrust", file}, "trusted"},
		{[]string{"servers", "set", "asks", "TOKEN"}, "set"},
		{[]string{"servers", "set", "--remove", "asks", "TOKEN"}, "set"},
		{[]string{"servers", "logout", "remote"}, "loggedIn"},
	} {
		c := h.command(t, e, append(tt.args, "--json")...)
		c.Stdin = strings.NewReader("secret\n")
		out, _ := c.Output() // doctor's exit code depends on the host
		var rows []map[string]any
		if err := json.Unmarshal(out, &rows); err != nil || strings.Contains(string(out), "secret") {
			t.Errorf("%v: %v\n%s", tt.args, err, out)
			continue
		}
		if tt.key != "" && (len(rows) == 0 || rows[0][tt.key] == nil) {
			t.Errorf("%v: no %q in %s", tt.args, tt.key, out)
		}
	}
}
