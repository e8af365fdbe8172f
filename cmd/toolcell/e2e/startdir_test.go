package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repository is a project whose files are named like the user's servers. Each of
// them leaves a mark when it runs.
type repository struct {
	*workshop
	mark string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs Python: apt-get install python3")
	}
	w := newWorkshop(t)
	r := &repository{w, filepath.Join(filepath.Dir(w.home), "mark")}
	w.env["PYTHONPATH"], w.env["TEST_MARK"] = filepath.Join(w.home, "lib"), r.mark
	const (
		python = "import os\nMARKos.environ['FAKE_ENV'] = 'jira'\nos.execv('FAKE_SERVER', ['server'])\n"
		shell  = "#!/bin/sh\nMARKFAKE_ENV=jira exec FAKE_SERVER\n"
	)
	for path, text := range map[string]string{
		"project/mcp_server_fetch.py":         strings.ReplaceAll(python, "MARK", "open(os.environ['TEST_MARK'], 'a').write('python ')\n"),
		"project/node_modules/.bin/mcp-fetch": strings.ReplaceAll(shell, "MARK", `printf 'npx ' >>"$TEST_MARK"`+"\n"),
		"project/server.sh":                   strings.ReplaceAll(shell, "MARK", `printf 'shell ' >>"$TEST_MARK"`+"\n"),
		"home/lib/mcp_server_fetch.py":        strings.ReplaceAll(python, "MARK", ""),
		"home/node_modules/.bin/mcp-fetch":    strings.ReplaceAll(shell, "MARK", ""),
	} {
		if err := os.Chmod(w.put(t, path, text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// putUser writes a config file in which PROJECT stands for the repository.
func (r *repository) putUser(t *testing.T, path, text string) string {
	t.Helper()
	return r.put(t, path, strings.ReplaceAll(text, "PROJECT", r.project))
}

// wantRun checks which files of the repository ran since the last time.
func (r *repository) wantRun(t *testing.T, when, want string) {
	t.Helper()
	got, err := os.ReadFile(r.mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(got)) != want {
		t.Errorf("%s: of the repository %q ran, want %q", when, got, want)
	}
	if err := os.RemoveAll(r.mark); err != nil {
		t.Fatal(err)
	}
}

// pythonServer is an entry that runs what it finds where it is started.
const pythonServer = `{"command": "/usr/bin/python3", "args": ["-m", "mcp_server_fetch"]}`

// useFetch calls the server "fetch" with every command that starts servers.
func (r *repository) useFetch(t *testing.T) {
	t.Helper()
	r.must(t, "ready", "servers", "check", "fetch")
	r.must(t, "search_issues", "servers", "tools", "fetch")
	r.must(t, "API-1", "servers", "call", "fetch", "search_issues")
	r.must(t, "API-1", "exec", "-c", "print(await mcp_fetch.search_issues())", "--server", "fetch")
	c := r.serve(t, r.env)
	c.python(t, "print((await mcp_fetch.search_issues())[0].id)", "fetch").want(t, "API-1")
	c.Close() // what follows is about other processes
}

// TestRepositoryRunsNothingThroughTheUsersServers: a folder that the user only
// looks at has files that commands of the user's own servers would find in it.
func TestRepositoryRunsNothingThroughTheUsersServers(t *testing.T) {
	r := newRepository(t)
	r.putUser(t, "home/.cursor/mcp.json", `{"mcpServers": {
		"fetch": `+pythonServer+`,
		"npx": {"command": "npx", "args": ["--offline", "mcp-fetch"]},
		"command": {"command": "./server.sh"},
		"argument": {"command": "sh", "args": ["./server.sh"]},
		"bare": {"command": "sh", "args": ["server.sh"]},
		"path": {"command": "server.sh", "env": {"PATH": ".:/usr/bin:/bin"}},
	}}`)
	r.useFetch(t)
	out, errs, _ := r.run(t, r.env, "servers", "check", "--json")
	var rows []struct{ Name, Status, Error string }
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	want := map[string][2]string{
		"fetch": {"ready", ""}, "npx": {"ready", ""}, "path": {"failed", "not there"},
		"command":  {"skipped", `its "command" is a path relative to the project`},
		"argument": {"skipped", `its argument 1 is a path relative to the project`},
		"bare":     {"failed", `"server.sh" is in the folder that toolcell was started in, but the server starts in your home directory: write the full path, or set "cwd" in`},
	}
	if _, err := exec.LookPath("npx"); err != nil {
		delete(want, "npx")
	}
	for _, row := range rows {
		if w, ok := want[row.Name]; ok && (row.Status != w[0] || !strings.Contains(row.Error, w[1])) {
			t.Errorf("%s is %s, %q, want %q", row.Name, row.Status, row.Error, w)
		}
	}
	if len(rows) != 6 {
		t.Errorf("rows: %+v", rows)
	}
	r.wantRun(t, "with servers of the user", "")
	r.putUser(t, "home/.cursor/mcp.json", `{"mcpServers": {"command": {"command": "./server.sh", "cwd": "${workspaceFolder}"}}}`)
	r.must(t, "API-1", "servers", "call", "command", "search_issues")
	r.wantRun(t, `with "cwd"`, "shell")
}

// onTheHost has servers of the project run on the host, where they leave their marks. The user has to
// accept that, beside the file.
func (r *repository) onTheHost(t *testing.T, servers ...string) {
	t.Helper()
	r.put(t, "home/.config/toolcell/policy.toml", "[default]\nsandbox = \"off\"\n")
	for _, name := range servers {
		if _, errs, code := r.run(t, r.env, "servers", "call", name, "search_issues"); code == 0 || !strings.Contains(errs, "toolcell servers trust "+name) {
			t.Errorf("before that was accepted: exit %d, %s", code, errs)
		}
		r.must(t, "no sandbox", "servers", "trust", name)
	}
}

// TestServersOfOneProjectStartThereIfItIsTrusted: Claude Code keeps such in a file
// of the user.
func TestServersOfOneProjectStartThereIfItIsTrusted(t *testing.T) {
	r := newRepository(t)
	r.putUser(t, "home/.claude.json", `{"projects": {"PROJECT": {"mcpServers": {"fetch": `+pythonServer+`}}}}`)
	r.useFetch(t)
	r.wantRun(t, "without a file to trust", "")
	file := r.put(t, "project/.mcp.json", `{"mcpServers": {"script": {"command": "./server.sh"}}}`)
	r.useFetch(t)
	if got := r.list(t); got["script"] != "untrusted" {
		t.Errorf("servers: %v", got)
	}
	r.wantRun(t, "before trust", "")
	r.must(t, "trusted as it is now", "servers", "trust", file)
	r.must(t, "API-1", "servers", "call", "fetch", "search_issues")
	r.wantRun(t, "after trust, the server of the user for this project", "python")
	r.onTheHost(t, "script")
	r.must(t, "API-1", "servers", "call", "script", "search_issues")
	r.wantRun(t, "after trust, the server of the project", "shell")
	r.put(t, "project/.mcp.json", `{"mcpServers": {"script": {"command": "./server.sh"}}} `)
	r.useFetch(t)
	r.wantRun(t, "after a change", "")
}

// TestServersOfTheProjectStartInIt, once it is trusted; the user's own do not.
func TestServersOfTheProjectStartInIt(t *testing.T) {
	r := newRepository(t)
	r.putUser(t, "home/.cursor/mcp.json", `{"mcpServers": {"other": `+pythonServer+`}}`)
	file := r.put(t, "project/.mcp.json", `{"mcpServers": {"fetch": `+pythonServer+`, "script": {"command": "sh", "args": ["./server.sh"]}}}`)
	r.must(t, "trusted as it is now", "servers", "trust", file)
	r.onTheHost(t, "fetch", "script")
	r.must(t, "API-1", "servers", "call", "other", "search_issues")
	r.wantRun(t, "the server of the user", "")
	r.must(t, "API-1", "servers", "call", "fetch", "search_issues")
	r.must(t, "API-1", "servers", "call", "script", "search_issues")
	r.wantRun(t, "the servers of the project", "python shell")
}
