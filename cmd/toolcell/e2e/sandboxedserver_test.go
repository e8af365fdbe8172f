package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// boxedTools are those of a server that tells what it can do where it runs.
var boxedTools = map[string]fakeTool{
	"read": func(a args) (any, error) {
		content, err := os.ReadFile(a.Path)
		return string(content), err
	},
	"write":    func(a args) (any, error) { return "written", os.WriteFile(a.Path, []byte(a.Body), 0o600) },
	"variable": func(a args) (any, error) { return os.Getenv(a.ID), nil },
}

// A boxed is a host's user with the server "boxed", whose sandbox shows the folder of its program.
type boxed struct {
	*host
	env    env
	folder string // of the server's program, which it may read
	policy func(keys string)
	entry  func(arg ...string) // writes the entry of the server
}

func newBoxed(t *testing.T, h *host) *boxed {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := sharedFolder(t)
	b := &boxed{host: h, folder: filepath.Join(dir, "program")}
	if err := errors.Join(os.Mkdir(b.folder, 0o755), os.Link(exe, filepath.Join(b.folder, "boxed"))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "home", "servers.json")
	xdg, writePolicy := policyFolder(t)
	b.policy = func(keys string) {
		writePolicy(fmt.Sprintf("[servers.boxed]\nsandbox = 'on'\nmounts = [{ source = %q, target = '/program' }]\n%s\n", b.folder, keys))
	}
	b.entry = func(arg ...string) { h.put(t, config, boxedEntry(t, "/program/boxed", arg)) }
	b.policy("")
	b.entry()
	b.env = h.ownState(t)
	maps.Copy(b.env, map[string]string{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": xdg, "TOOLCELL_SERVERS_CONFIG": config})
	return b
}

// boxedEntry is a file with the server "boxed".
func boxedEntry(t *testing.T, command string, args []string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"boxed": map[string]any{
		"command": command, "args": args, "env": map[string]string{fakeServerEnv: "boxed"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tries runs code that prints what becomes of a call.
func (b *boxed) tries(t *testing.T, c *client, call, want string) {
	t.Helper()
	r := c.python(t, "from mcp.runtime import MCPError\ntry: print(await mcp_boxed."+call+")\nexcept MCPError as e: print(e)", "boxed")
	if !strings.Contains(r.text, want) {
		t.Errorf("%s: got %s\nwant %s", call, r.text, want)
	}
}

// TestServerRunsInASandbox: it answers, it sees the folder of its section and no other file of the
// host's, and what it keeps in its HOME is there for the next process.
func TestServerRunsInASandbox(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		b := newBoxed(t, h)
		secret := filepath.Join(sharedFolder(t), "secret")
		h.put(t, secret, "what only the host has")
		h.put(t, filepath.Join(b.folder, "shown"), "what the section shows")

		first := h.serve(t, b.env)
		b.tries(t, first, "read(path='/program/shown')", "what the section shows")
		b.tries(t, first, fmt.Sprintf("read(path=%q)", secret), "open "+secret+": no such file or directory")
		b.tries(t, first, "write(path='/program/shown', body='x')", "read-only file system")
		b.tries(t, first, "variable(id='HOME')", "/home/server")
		b.tries(t, first, "write(path='/home/server/kept', body='what it has kept')", "written")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		b.tries(t, h.serve(t, b.env), "read(path='/home/server/kept')", "what it has kept")

		// The same server on the host shows that there is a wall to be seen.
		b.env["XDG_CONFIG_HOME"] = sharedFolder(t)
		b.env["TOOLCELL_SERVERS_CONFIG"] = fakeConfig(t, map[string]any{"boxed": map[string]any{
			"command": filepath.Join(b.folder, "boxed"), "env": map[string]string{fakeServerEnv: "boxed"},
		}})
		b.tries(t, h.serve(t, b.env), fmt.Sprintf("read(path=%q)", secret), "what only the host has")
	})
}

// TestResultsAndRecordSayThatAServerIsInASandbox, and in its first run a client learns it.
func TestResultsAndRecordSayThatAServerIsInASandbox(t *testing.T) {
	t.Parallel()
	b := newBoxed(t, firstHost(t))
	c := b.serve(t, b.env)
	const reads, fails = "print(await mcp_boxed.variable(id='HOME'))", "await mcp_boxed.read(path='/none')"
	for n, tt := range []struct {
		code string
		told bool
	}{{reads, true}, {reads, false}, {fails, true}} {
		r := c.python(t, tt.code, "boxed")
		where, _ := r.fields["where"].(map[string]any)
		if (where["boxed"] == "sandboxed") != tt.told || strings.Contains(r.text, "\nservers: boxed (sandboxed)") != tt.told || r.isError != (tt.code == fails) {
			t.Errorf("run %d: %v\n%s", n+1, r.fields, r.text)
		}
	}
	if out, errs, _ := b.run(t, b.env, "runs", "show"); !strings.Contains(out, "  sandboxed\n") {
		t.Errorf("runs show: %s%s", out, errs)
	}
	if out, errs, _ := b.run(t, b.env, "servers", "check", "boxed"); !strings.Contains(out, "boxed  ready   stdio, sandboxed") {
		t.Errorf("servers check: %s%s", out, errs)
	}
	if out, errs, _ := b.run(t, b.env, "doctor"); !strings.Contains(out, `where servers run: sandboxed: "boxed"`) {
		t.Errorf("doctor: %s%s", out, errs)
	}
}

// TestEveryCommandGoesByThePolicy: none starts a server on the host that the policy has in a sandbox,
// also if a variable names the policy that the command has no flag for.
func TestEveryCommandGoesByThePolicy(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	mark := filepath.Join(sharedFolder(t), "mark")
	e := env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": sharedFolder(t), "TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"marks": map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo ran >>" + mark + "; exit 3"}},
	}})}
	commands := [][]string{
		{"servers", "check", "marks"},
		{"servers", "tools", "marks"},
		{"servers", "search", "anything"},
		{"servers", "call", "marks", "x"},
		{"servers", "pins"},
		{"exec", "--server", "marks", "-c", "print(await mcp_marks.x())"},
		{"servers", "sandbox", "marks"},
	}
	e["TOOLCELL_POLICY"] = filepath.Join(sharedFolder(t), "named.toml")
	h.put(t, e["TOOLCELL_POLICY"], "[default]\nsandbox = \"on\"\n")
	for _, args := range commands {
		out, errs, _ := h.run(t, e, args...)
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("%q starts it on the host:\n%s%s", args, out, errs)
		}
	}
	delete(e, "TOOLCELL_POLICY")
	out, errs, _ := h.run(t, e, commands[0]...)
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("without the policy it leaves no mark either: %s%s", out, errs)
	}
}

// TestChangedEntryIsRefused until the user accepts it, since the section was for another command.
func TestChangedEntryIsRefused(t *testing.T) {
	t.Parallel()
	b := newBoxed(t, firstHost(t))
	b.tries(t, b.serve(t, b.env), "variable(id='HOME')", "/home/server")
	b.entry("other")
	c := b.serve(t, b.env)
	b.tries(t, c, "variable(id='HOME')", "toolcell servers trust boxed")
	if out, errs, code := b.run(t, b.env, "servers", "trust", "boxed"); code != exitOK || !strings.Contains(out, "+argument: other") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	b.tries(t, b.serve(t, b.env), "variable(id='HOME')", "/home/server")
}

// TestProjectTakesNoServersName: what a section gives the user's server is not for the entry of a
// project, although the user trusts the project's file.
func TestProjectTakesNoServersName(t *testing.T) {
	t.Parallel()
	b := newBoxed(t, firstHost(t))
	b.tries(t, b.serve(t, b.env), "variable(id='HOME')", "/home/server")
	file := filepath.Join(b.project(t, filepath.Join(sharedFolder(t), "project")), ".mcp.json")
	b.put(t, file, boxedEntry(t, "/program/boxed", []string{"of-the-project"}))
	delete(b.env, "TOOLCELL_SERVERS_CONFIG") // which would come first
	b.env["TOOLCELL_PROJECT"] = "read"
	trust := b.command(t, b.env, "servers", "trust", file)
	trust.Dir = filepath.Dir(file)
	if out, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := b.serveProject(t, filepath.Dir(file), b.env, withoutRoots, nil)
	b.tries(t, c, "variable(id='HOME')", "toolcell servers trust boxed")
}

// TestServerWithoutItsSecretDoesNotStart, and the error names the variable.
func TestServerWithoutItsSecretDoesNotStart(t *testing.T) {
	t.Parallel()
	b := newBoxed(t, firstHost(t))
	b.policy("secrets = ['BOXED_TOKEN']")
	b.tries(t, b.serve(t, b.env), "variable(id='BOXED_TOKEN')", `server "boxed" needs a value for BOXED_TOKEN`)
	b.env["BOXED_TOKEN"] = "a value"
	b.tries(t, b.serve(t, b.env), "variable(id='BOXED_TOKEN')", "a value")
}

// TestNodeServerRunsInASandbox: one that people use, from a folder that it is shown.
func TestNodeServerRunsInASandbox(t *testing.T) {
	t.Parallel()
	program := npmProgram(t, "mcp-server-filesystem")
	h, dir := firstHost(t), sharedFolder(t)
	h.own(t, dir)
	c, policy := serveReal(t, h, map[string]any{"files": map[string]any{"command": program, "args": []string{dir}}})
	policy(fmt.Sprintf("[servers.files]\nsandbox = 'on'\nmounts = [{ source = %q }, { source = %q, write = true }]\n", os.Getenv("TOOLCELL_TEST_NPM"), dir))
	got := c.succeeds(t, fmt.Sprintf("await mcp_files.write_file(path=%q, content='hello')", filepath.Join(dir, "a.txt")), "files")
	content, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err != nil || string(content) != "hello" {
		t.Errorf("%s: %q, %v", got, content, err)
	}
}
