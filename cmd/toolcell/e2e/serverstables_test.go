package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
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
			e := env{"TOOLCELL_SERVERS_CONFIG": config, "TERM": "xterm", "NO_COLOR": "1"}
			p := atTerminal(t, h.command(t, e, tt.args...), width)
			if code := p.leaves(); code != tt.code {
				t.Errorf("%v: exit code %d", tt.args, code)
			}
			p.sees(tt.want)
			for line := range strings.Lines(p.screen.String()) {
				line = strings.TrimRight(line, "\r\n")
				line = line[strings.LastIndex(line, "\x1b[J")+1:] // what was erased before does not count
				line = strings.TrimPrefix(line, "[J")
				if n := uniseg.StringWidth(line); n > int(width) && strings.Contains(strings.TrimSpace(line), " ") { // a word, such as a path, stays whole
					t.Errorf("%v in %d columns: a line of %d: %q", tt.args, width, n, line)
				}
			}
		}
		out, errs, code := h.run(t, env{"TOOLCELL_SERVERS_CONFIG": config}, append(tt.args, "--json")...)
		var rows []map[string]any
		if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) == 0 || code != tt.code || strings.Contains(out, "…") {
			t.Errorf("%v --json: exit %d, %v\n%s%s", tt.args, code, err, out, errs)
		}
	}
}

// TestJSONEverywhere: each command that shows something prints an array of
// objects if asked to, and nothing else on standard output.
func TestJSONEverywhere(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = "host"
	e["TOOLCELL_SERVERS_CONFIG"] = writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"asks":   map[string]any{"command": "x", "env": map[string]string{"TOKEN": "${TOKEN}"}},
		"remote": map[string]any{"url": "http://127.0.0.1:1/"},
		"odd":    map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: "odd"}},
	}})
	_, v := pythons()
	image := "oci:" + rootfstest.Layout(t, v)
	file := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"theirs": {"command": "x"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	h.must(t, e, "exec", "-c", "1")
	commands := []struct {
		args []string
		key  string // of the row; none if there is nothing to show
	}{
		{[]string{"version"}, "version"},
		{[]string{"doctor"}, "code"},
		{[]string{"images", "list"}, ""},
		{[]string{"tools", "list"}, ""},
		{[]string{"approvals", "list"}, ""},
		{[]string{"servers", "list"}, "name"},
		{[]string{"servers", "trust", file}, "trusted"},
		{[]string{"servers", "untrust", file}, "trusted"},
		{[]string{"servers", "set", "asks", "TOKEN"}, "set"},
		{[]string{"servers", "set", "--remove", "asks", "TOKEN"}, "set"},
		{[]string{"servers", "logout", "remote"}, "loggedIn"},
		{[]string{"servers", "call", "odd", "pid"}, "value"},
		{[]string{"servers", "call", "--raw", "odd", "pid"}, "answer"},
		{[]string{"servers", "tools", "odd"}, "tool"},
		{[]string{"images", "pull", image}, "digest"},
		{[]string{"images", "list"}, "ref"},
		{[]string{"images", "inspect", image}, "layers"},
		{[]string{"images", "verify"}, "damage"},
		{[]string{"images", "prune"}, "freed"},
		{[]string{"images", "rm", image}, "freed"},
		{[]string{"install", "cursor", "--print"}, "entry"},
		{[]string{"install", "cursor", "--dry-run"}, "diff"},
		{[]string{"install", "cursor"}, "status"},
		{[]string{"uninstall", "cursor", "--dry-run"}, "diff"},
		{[]string{"uninstall", "cursor"}, "status"},
	}
	for _, tt := range commands {
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
	// The same again, as text, where nothing can be printed.
	e["TOOLCELL_STATE_DIR"] = h.ownState(t)["TOOLCELL_STATE_DIR"]
	for _, tt := range commands {
		out, err := h.shell(t, e, `echo secret | "$@" >/dev/full`, tt.args...).CombinedOutput()
		isSilent := tt.key == "" || slices.Contains(tt.args, "--remove")
		if !isSilent && (err == nil || !strings.Contains(string(out), "no space left on device")) {
			t.Errorf("%v into a full disk: %v\n%s", tt.args, err, out)
		}
	}
}
