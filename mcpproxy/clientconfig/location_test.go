package clientconfig_test

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestFoldersOfEditorsAreOnlyTheirOwn: a file of the project is never taken for the user's.
func TestFoldersOfEditorsAreOnlyTheirOwn(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"project/EDITOR/mcp.json": `{"servers":{"a":{"command":"x"}}}`})
	o.Trusted = nil
	if c := clientconfig.Discover(o); len(c.Servers) != 0 {
		t.Errorf("servers = %s, from %s", names(c), c.Servers[0].Source)
	}
	for _, path := range o.Resolve("EDITOR/mcp.json") {
		if !strings.HasPrefix(path, o.Home+"/") {
			t.Errorf("%s is among the user's files", path)
		}
	}
	for _, pattern := range []string{"", "${NONE}/a", "${env:DIR}/a"} { // the last is no variable here
		if got := o.Resolve(pattern); len(got) != 0 {
			t.Errorf("%q leads to %q", pattern, got)
		}
	}
}

func TestFilesForMovedServers(t *testing.T) {
	const folder = "${XDG_CONFIG_HOME:-~/.config}/toolcell/servers/"
	for client, want := range map[string]string{
		"cursor": folder + "cursor.json", "codex": folder + "codex.toml", "goose": folder + "goose.yaml",
		"continue": folder + "continue.yaml", "amp": folder + "amp.json", "shared": "",
	} {
		if got := clientconfig.DialectOf(client).MovedFile(); got != want {
			t.Errorf("%s: %q, want %q", client, got, want)
		}
	}
	if got := clientconfig.ClaudeProject.MovedFile(); got != "" {
		t.Errorf("a client without a file of the user: %q", got)
	}
}
