package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// TestCheckShowsWhyAServerDies, not only the beginning of its traceback, in a pipe too.
func TestCheckShowsWhyAServerDies(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TOOLCELL_STATE_DIR", filepath.Join(home, "state"))
	t.Chdir(home)
	if err := os.Mkdir("MCPs", 0o755); err != nil {
		t.Fatal(err)
	}
	const script = `{"command": "sh", "args": ["-c", "printf 'Traceback (most recent call last):\\n' >&2; for i in $(seq 30); do echo '  File \"/a/long/path/of/a/server.py\", line 4, in main' >&2; done; printf '\\033[31mConnectionError\\033[0m: no route to db\\n' >&2; exit 1"]}`
	if err := os.WriteFile("MCPs/dead.json", []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	code := runCommandLine([]string{"toolcell", "servers", "check"}, os.Stdin, out, os.Stderr)
	table, below, _ := strings.Cut(read(t, out), "\n\nThe end of what dead wrote to stderr:\n")
	if code != console.ExitFail || !strings.HasSuffix(table, "exited: exit status 1; its stderr says: ConnectionError: no route to db") {
		t.Errorf("exit %d: %s", code, table)
	}
	if lines := strings.Split(strings.TrimRight(below, "\n"), "\n"); len(lines) != outputLines || lines[len(lines)-1] != "  ConnectionError: no route to db" || !strings.HasPrefix(lines[0], `    File "/a/long`) {
		t.Errorf("below the table are %d lines: %q", len(lines), below)
	}
}
