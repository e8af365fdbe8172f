package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const codeSettings = `{
	// mine
	"editor.fontSize": 14,
	"mcp": {
		"inputs": [{"id": "which", "password": true}],
		"servers": {
			"jira": { "command": "FAKE_SERVER", "env": { "FAKE_ENV": "jira", "JIRA_TOKEN": "s3cret-v4lue" } }, // tickets
			"asks": { "command": "FAKE_SERVER", "env": { "FAKE_ENV": "${input:which}" } },
			"unset": { "command": "FAKE_SERVER", "args": ["${env:NO_SUCH_VARIABLE}"] },
		},
	},
	"amp.mcpServers": { "amps": { "command": "FAKE_SERVER" } },
}
`

// TestMoveServersOfSettings: servers in VS Code's settings.json are moved along with
// those in its mcp.json, into which toolcell goes, and undo restores both.
func TestMoveServersOfSettings(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	settings := w.put(t, "home/.config/Code/User/settings.json", codeSettings)
	file := w.put(t, "home/.config/Code/User/mcp.json", `{"servers": {"other": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "github"}}}}`)
	before, beforeSettings := read(t, file), read(t, settings)
	moved := filepath.Join(w.home, ".config/toolcell/servers/vscode-settings.json")
	if out, err := w.shell(t, w.env, `printf 'search\n' | "$@"`, "servers", "set", "asks", "which").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	if out, _, code := w.run(t, w.env, "install", "vscode"); code != 0 || read(t, settings) != beforeSettings || !strings.Contains(out, "its 4 other servers cost tokens") {
		t.Errorf("without --move-servers: exit %d\n%s\n%s", code, out, read(t, settings))
	}
	out, errs, code := w.run(t, w.env, "install", "vscode", "--move-servers", "--dry-run")
	if code != 0 || read(t, settings) != beforeSettings || !strings.Contains(out, "+++ "+moved) || strings.Contains(out+errs, "s3cret") {
		t.Errorf("a dry run: exit %d\n%s%s", code, out, errs)
	}
	out, errs, code = w.run(t, w.env, "install", "vscode", "--move-servers", "--yes")
	if code != 0 || !strings.Contains(out, "moved other to ") || !strings.Contains(out, "moved jira, asks from "+settings+" to "+moved) {
		t.Errorf("moving: exit %d\n%s%s", code, out, errs)
	}
	got := read(t, settings)
	for text, stays := range map[string]bool{"// mine": true, `"which"`: true, `"unset"`: true, `"amps"`: true, "jira": false, `"asks"`: false, `"toolcell"`: false} {
		if strings.Contains(got, text) != stays {
			t.Errorf("%s stays: %v, want %v\n%s", text, !stays, stays, got)
		}
	}
	w.must(t, "Found x", "servers", "call", "asks", "search", `{"query": "x"}`)
	w.must(t, "API-1", "exec", "-c", "print(await mcp_jira.search_issues())", "--server", "jira")

	w.must(t, "restored as it was before: "+settings, "uninstall", "--all")
	if got := read(t, settings); got != beforeSettings {
		t.Errorf("undo made it\n%s", got)
	}
	if got := read(t, file); got != before {
		t.Errorf("undo made mcp.json\n%s", got)
	}
	if _, err := os.Stat(moved); !os.IsNotExist(err) {
		t.Errorf("the moved servers are still there: %v", err)
	}

	// Both are changed meanwhile.
	w.must(t, "moved", "install", "vscode", "--move-servers", "--yes")
	w.put(t, "home/.config/Code/User/settings.json", strings.Replace(read(t, settings), "mine", "yours", 1))
	w.must(t, `"putBack": 2`, "uninstall", "vscode", "--json")
	if got := read(t, settings); !strings.Contains(got, "// yours") || !strings.Contains(got, "// tickets") {
		t.Errorf("it is now\n%s", got)
	}
	w.must(t, "nothing to do", "uninstall", "vscode")
}
