package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// npmProgram finds a program that .ci/npm.sh has installed, or skips the test.
func npmProgram(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("TOOLCELL_TEST_NPM")
	path := filepath.Join(dir, "node_modules", ".bin", name)
	if _, err := os.Stat(path); dir == "" || err != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm, then make test")
	}
	return path
}

// inspect runs the MCP Inspector's command line against the binary.
func inspect(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	return inspectWith(t, nil, args...)
}

// inspectWith is inspect with options of the Inspector itself.
func inspectWith(t *testing.T, options []string, args ...string) (stdout string) {
	t.Helper()
	h := firstHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	all := slices.Concat([]string{"--cli", "-e", "TOOLCELL_IMAGE=host", "-e", "TOOLCELL_STATE_DIR=" + filepath.Join(h.home, "state")},
		options, []string{bin, "serve"}, args)
	c := exec.CommandContext(ctx, npmProgram(t, "mcp-inspector"), all...)
	c.Dir = h.home
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("the inspector: %v\n%s%s", err, out, errs.String())
	}
	return string(out)
}

func TestInspectorListsTheTool(t *testing.T) {
	t.Parallel()
	var list struct{ Tools []struct{ Name string } }
	if out := inspect(t, "--method", "tools/list"); json.Unmarshal([]byte(out), &list) != nil || len(list.Tools) != 1 || list.Tools[0].Name != "run_python" {
		t.Errorf("got %s", out)
	}
}

func TestInspectorCallsTheTool(t *testing.T) {
	t.Parallel()
	out := inspect(t, "--method", "tools/call", "--tool-name", "run_python", "--tool-arg", `code=print("inspected", 6*7)`)
	if !strings.Contains(out, "inspected 42") {
		t.Errorf("got %s", out)
	}
}

func TestInspectorReadsTheManual(t *testing.T) {
	t.Parallel()
	if out := inspect(t, "--method", "resources/list"); !strings.Contains(out, "resource://toolcell/capabilities") {
		t.Errorf("got %s", out)
	}
	if out := inspect(t, "--method", "resources/read", "--uri", "resource://toolcell/capabilities"); !strings.Contains(out, "search_tool_docs") {
		t.Errorf("got %s", out)
	}
}

// TestServersFromNPM calls the reference servers from sandboxed code.
func TestServersFromNPM(t *testing.T) {
	t.Parallel()
	everything, filesystem := npmProgram(t, "mcp-server-everything"), npmProgram(t, "mcp-server-filesystem")
	dir := filepath.Join(shared, "files")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := fakeConfig(t, map[string]any{
		"everything": map[string]any{"command": everything},
		"files":      map[string]any{"command": filesystem, "args": []string{dir}},
	})
	h := firstHost(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
	r := c.python(t, "print((await mcp_everything.echo(message='hi there')), await mcp_servers['everything'].get_sum(a=20, b=22))", "everything")
	if r.isError || !strings.Contains(r.text, "hi there") || !strings.Contains(r.text, "42") {
		t.Errorf("everything: %s", r.text)
	}
	r = c.python(t, "t = await mcp_files.read_text_file(path='"+dir+"/note.txt')\nprint(t if isinstance(t, str) else t.content)", "files")
	if r.isError || !strings.Contains(r.text, "from the host") {
		t.Errorf("files: %s", r.text)
	}
	r = c.python(t, "try:\n  await mcp_files.read_text_file(path='/etc/shadow')\nexcept Exception as e: print(type(e).__name__, e)", "files")
	if r.isError || !strings.Contains(r.text, "MCPError") || !strings.Contains(r.text, "denied") {
		t.Errorf("files, outside its folder: %s", r.text)
	}
	r = c.python(t, "from mcp import runtime\nfor h in await runtime.search_tool_docs('add two numbers'): print(h.server, h.tool)")
	if r.isError || !strings.Contains(r.text, "everything get-sum") {
		t.Errorf("search: %s", r.text)
	}
}
