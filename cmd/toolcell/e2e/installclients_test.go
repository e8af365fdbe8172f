package e2e

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRealClientsReadTheEntry installs toolcell into the files that real clients
// wrote, and has the clients list their servers: some start toolcell for that.
// Gemini's command is installed for the tests; the others, which are large, are
// run where TOOLCELL_TEST_NPM's folder has them, and their files are changed and
// read by toolcell alone elsewhere.
func TestRealClientsReadTheEntry(t *testing.T) {
	t.Parallel()
	says := map[string]string{ // what the client's list has of toolcell
		"gemini": "serve (stdio) - Connected", "claude": "serve - ✔ Connected", "codex": "enabled", "opencode": "toolcell",
	}
	for _, client := range realClients {
		t.Run(client.program, func(t *testing.T) {
			w := newWorkshop(t)
			program := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules", ".bin", client.program)
			if client.written != "" {
				w.copyWritten(t, filepath.Join("testdata/written", client.written))
			} else {
				program = npmProgram(t, client.program)
				for _, command := range client.commands {
					w.configure(t, program, command)
				}
				// Its list starts nothing in an untrusted folder.
				w.trustInGemini(t)
			}
			before := w.list(t)
			w.must(t, "added to", "install", client.program, "--env", "TOOLCELL_IMAGE=host")
			after := w.list(t)
			if after["toolcell"] != "skipped" {
				t.Errorf("toolcell does not see itself: %v", after)
			}
			if delete(after, "toolcell"); !maps.Equal(before, after) {
				t.Errorf("other servers are %v and were %v", after, before)
			}
			if _, err := os.Stat(program); err == nil {
				if got := w.ask(t, program); !strings.Contains(lineWith(got, "toolcell ", "toolcell:"), says[client.program]) {
					t.Errorf("the client says\n%s", got)
				}
			}
			w.must(t, "", "uninstall", client.program)
			if got := w.list(t); !maps.Equal(before, got) {
				t.Errorf("after undo: %v, before: %v", got, before)
			}
		})
	}
}

// lineWith is the first line that has one of the words.
func lineWith(text string, words ...string) string {
	for line := range strings.Lines(text) {
		for _, word := range words {
			if strings.Contains(line, word) {
				return line
			}
		}
	}
	return ""
}

func (w *workshop) trustInGemini(t *testing.T) {
	t.Helper()
	file := filepath.Join(w.home, ".gemini/settings.json")
	text := strings.Replace(read(t, file), "{", `{ "security": { "folderTrust": { "enabled": false } }, // no questions`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask has a client list its servers.
func (w *workshop) ask(t *testing.T, program string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow(2*time.Minute))
	defer cancel()
	c := exec.CommandContext(ctx, program, "mcp", "list")
	c.Dir = w.project
	c.Env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CI=1", "NO_COLOR=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "GEMINI_TELEMETRY_ENABLED=false", "GEMINI_CLI_NO_RELAUNCH=true",
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s mcp list: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}
