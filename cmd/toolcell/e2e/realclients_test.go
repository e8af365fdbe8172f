package e2e

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realClients are MCP clients that write their config files themselves.
// Gemini's command is installed for the tests. The others are too large for
// that, 350 to 400 MB each: testdata/written has what they wrote when these
// commands were given to them, and they are run instead where
// TOOLCELL_TEST_NPM's folder has them.
var realClients = []struct {
	program, written string // written: the version that did
	commands         [][]string
	want             map[string]string
}{
	{"gemini", "", [][]string{
		{"mcp", "add", "--scope", "user", "gfs", "npx", "--", "-y", "@x/fs", "/tmp"},
		{"mcp", "add", "--scope", "project", "--transport", "http", "-H", "X-Key: $GEMINI_TEST_KEY", "ghttp", "https://g.example.com/mcp", "--timeout", "5000", "--include-tools", "a"},
		{"mcp", "add", "--scope", "user", "--transport", "sse", "-H", "X-Key: $GEMINI_TEST_KEY", "gsse", "https://g.example.com/sse"},
	}, map[string]string{"gfs": "idle stdio", "ghttp": "untrusted http", "gsse": "needs_value sse"}},
	{"claude", "claude-2.1.330", [][]string{
		{"mcp", "add", "github", "-e", "GITHUB_TOKEN=abc123", "--", "npx", "-y", "@modelcontextprotocol/server-github"},
		{"mcp", "add", "-s", "user", "--transport", "http", "sentry", "https://mcp.sentry.dev/mcp", "-H", "Authorization: Bearer ${SENTRY}"},
		{"mcp", "add", "-s", "project", "--transport", "sse", "asana", "https://mcp.asana.com/sse"},
		{"mcp", "add", "-s", "project", "everything", "--", "npx", "-y", "@modelcontextprotocol/server-everything"},
	}, map[string]string{"github": "idle stdio", "sentry": "needs_value http", "asana": "untrusted sse", "everything": "untrusted stdio"}},
	{"codex", "codex-0.169.0", [][]string{
		{"mcp", "add", "docs", "--env", "K=v", "--", "npx", "-y", "some-docs"},
		{"mcp", "add", "remote", "--url", "https://mcp.example.com/mcp", "--bearer-token-env-var", "DOCS_TOKEN"},
	}, map[string]string{"docs": "idle stdio", "remote": "needs_value http"}},
	{"opencode", "opencode-1.18.33", [][]string{
		{"mcp", "add", "ofs", "--env", "A=b", "--", "npx", "-y", "@x/fs", "/tmp"},
		{"mcp", "add", "oremote", "--url", "https://o.example.com/mcp", "--header", "X-Key=v"},
	}, map[string]string{"ofs": "idle stdio", "oremote": "idle remote"}},
}

// TestWhatRealClientsWroteIsRead lets clients write their config files and
// finds the same servers in them.
func TestWhatRealClientsWroteIsRead(t *testing.T) {
	t.Parallel()
	for _, client := range realClients {
		t.Run(client.program, func(t *testing.T) {
			w := newWorkshop(t)
			program := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules", ".bin", client.program)
			if _, err := os.Stat(program); err != nil && client.written != "" {
				w.copyWritten(t, filepath.Join("testdata/written", client.written))
			} else {
				program = npmProgram(t, client.program)
				for _, command := range client.commands {
					w.configure(t, program, command)
				}
			}
			out, errs, code := w.run(t, w.env, "servers", "list", "--json")
			var all []struct{ Name, Status, Transport, Client string }
			if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 {
				t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
			}
			got := map[string]string{}
			for _, s := range all {
				got[s.Name] = s.Status + " " + s.Transport
				if s.Client != client.program {
					t.Errorf("%s is of client %q", s.Name, s.Client)
				}
			}
			if !maps.Equal(got, client.want) {
				t.Errorf("found %v, want %v\n%s", got, client.want, errs)
			}
		})
	}
}

// configure runs a client's command in the workshop.
func (w *workshop) configure(t *testing.T, program string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow(2*time.Minute))
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = w.project
	// The real one's settings and network are none of the test's.
	c.Env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CI=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "GEMINI_TELEMETRY_ENABLED=false", "GEMINI_CLI_NO_RELAUNCH=true",
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(program), args, err, out)
	}
}

// copyWritten puts files in their places in the workshop.
func (w *workshop) copyWritten(t *testing.T, from string) {
	t.Helper()
	project, err := filepath.EvalSymlinks(w.project)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		w.put(t, rel, strings.ReplaceAll(string(text), `"PROJECT"`, `"`+project+`"`))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
