package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const cursorFile = `{
  // mine
  "mcpServers": {
    "jira": { "command": "FAKE_SERVER", "env": { "FAKE_ENV": "jira", "JIRA_TOKEN": "s3cret-v4lue" } }, // tickets
    "off": { "command": "FAKE_SERVER", "disabled": true },
    "gone": { "command": "/no/such/server" },
    "strange": { "command": "x", "args": ["${TOKEN}"] }
  }
}
`

// TestMoveServersBehindToolcell: the client is left with toolcell, toolcell has the
// others from their new place, once and trusted, and all of it can be undone.
func TestMoveServersBehindToolcell(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", cursorFile)
	before, moved := read(t, file), filepath.Join(w.home, ".config/toolcell/servers/cursor.json")
	list := w.list(t)

	out, errs, code := w.run(t, w.env, "install", "cursor", "--move-servers", "--dry-run")
	if code != 0 || read(t, file) != before {
		t.Fatalf("a dry run: exit %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{
		"-    \"jira\"", "+++ " + moved, `"JIRA_TOKEN": "…"`, "stays: strange: it cannot be used from here",
		"could not be asked: starting server \"gone\"", "saves ", "and those of 1 server that could not be asked",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+errs, "s3cret") {
		t.Errorf("a secret is shown:\n%s%s", out, errs)
	}
	if _, errs, code := w.run(t, w.env, "install", "cursor", "--move-servers"); code != exitUsage || !strings.Contains(errs, "add --yes") || read(t, file) != before {
		t.Errorf("without a terminal: exit %d\n%s", code, errs)
	}

	w.must(t, "moved jira, off, gone to "+moved, "install", "cursor", "--move-servers", "--yes")
	if got := read(t, file); strings.Contains(got, "jira") || !strings.Contains(got, "strange") || !strings.Contains(got, "// mine") || !strings.Contains(got, "// tickets") {
		t.Errorf("left is\n%s", got)
	}
	if info, err := os.Stat(moved); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(read(t, moved), "s3cret-v4lue") {
		t.Errorf("%v, %v\n%s", info, err, read(t, moved))
	}
	list["toolcell"], list["gone"] = "skipped", "failed" // counting its tokens was tried
	if after := w.list(t); !maps.Equal(after, list) {
		t.Errorf("servers are %v\nand were %v", after, list)
	}
	w.must(t, "API-1", "exec", "-c", "print(await mcp_jira.search_issues())", "--server", "jira")
	w.must(t, "there are no servers to move", "install", "cursor", "--move-servers", "--yes", "--dry-run")

	w.must(t, "restored as it was before", "install", "cursor", "--undo")
	if got := read(t, file); got != before {
		t.Errorf("undo made it\n%s", got)
	}
	if _, err := os.Stat(moved); !os.IsNotExist(err) {
		t.Errorf("the moved servers are still there: %v", err)
	}

	// Both files are changed meanwhile: the servers come back as they are now.
	w.must(t, "moved", "install", "cursor", "--move-servers", "--yes")
	w.put(t, "home/.cursor/mcp.json", strings.Replace(read(t, file), "mine", "yours", 1))
	w.put(t, "home/.config/toolcell/servers/cursor.json", strings.Replace(read(t, moved), "s3cret-v4lue", "n3w-t0ken", 1))
	w.must(t, "put back: 3 servers", "uninstall", "cursor")
	if got := read(t, file); !strings.Contains(got, "// yours") || !strings.Contains(got, "n3w-t0ken") || !strings.Contains(got, "// tickets") || strings.Contains(got, `"toolcell"`) {
		t.Errorf("it is now\n%s", got)
	}
	delete(list, "toolcell")
	if after := w.list(t); !maps.Equal(after, list) {
		t.Errorf("servers are %v\nand were %v", after, list)
	}
}

// TestMoveTakesValuesAlong: what the user set for VS Code's inputs holds at the
// new place, and is forgotten with it.
func TestMoveTakesValuesAlong(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.config/Code/User/mcp.json", `{"inputs": [{"id": "which", "password": true}],
		"servers": {"asks": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "${input:which}"}}}}`)
	before := read(t, file)
	if out, err := w.shell(t, w.env, `printf 'search\n' | "$@"`, "servers", "set", "asks", "which").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.must(t, "moved asks", "install", "vscode", "--move-servers", "--yes")
	w.must(t, "Found x", "servers", "call", "asks", "search", `{"query": "x"}`)
	w.must(t, "restored", "install", "vscode", "--undo")
	if got := read(t, file); got != before {
		t.Errorf("undo made it\n%s", got)
	}
	values := read(t, filepath.Join(filepath.Dir(w.home), "state/state/values.json"))
	if strings.Contains(values, "toolcell/servers") || !strings.Contains(values, file) {
		t.Errorf("values: %s", values)
	}
}

// TestMoveIsAskedOnATerminal: nothing is moved unless a person says yes.
func TestMoveIsAskedOnATerminal(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", cursorFile)
	before := read(t, file)
	p := w.onTerminal(t, "install", "cursor", "--move-servers")
	p.answers("Move 3 servers of Cursor behind toolcell? [y/N]", "n")
	if shown := p.end(); !strings.Contains(shown, "nothing was changed") || !strings.Contains(shown, "saves ") || strings.Contains(shown, "s3cret") {
		t.Errorf("no: %s", shown)
	}
	if got := read(t, file); got != before {
		t.Errorf("after no the file is\n%s", got)
	}
	p = w.onTerminal(t, "install", "cursor", "--move-servers")
	p.answers("Move 3 servers", "y")
	p.answers("May code read the files of the project", "")
	if shown := p.end(); !strings.Contains(shown, "moved jira, off, gone") || read(t, filepath.Join(w.home, ".config/toolcell/config.toml")) != "project = \"off\"\n" {
		t.Errorf("yes: %s", shown)
	}
	if got := w.list(t)["jira"]; got != "idle" {
		t.Errorf("jira is %q", got)
	}
}
