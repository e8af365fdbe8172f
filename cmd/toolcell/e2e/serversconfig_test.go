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

// workshop is a home and a project of their own, on the first host.
type workshop struct {
	*host
	home, project string
	env           env
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	h := *firstHost(t)
	root, err := os.MkdirTemp(shared, "workshop-")
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{host: &h, home: filepath.Join(root, "home"), project: filepath.Join(root, "project")}
	for _, dir := range []string{root, w.home, w.project} {
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	w.host.home = w.project // where commands run
	w.env = env{"HOME": w.home, "TOOLCELL_STATE_DIR": filepath.Join(root, "state"), "TOOLCELL_IMAGE": "host"}
	w.env["PATH"] = filepath.Dir(bin) + ":" + os.Getenv("PATH") // so that clients start the binary where it is
	return w
}

func (w *workshop) put(t *testing.T, path, text string) string {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(filepath.Dir(w.home), path)
	text = strings.NewReplacer("FAKE_SERVER", exe, "FAKE_ENV", fakeServerEnv).Replace(text)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// list gives the status of every server.
func (w *workshop) list(t *testing.T) map[string]string {
	t.Helper()
	out, errs, code := w.run(t, w.env, "servers", "list", "--json")
	var all []struct{ Name, Status string }
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.Name] = s.Status
	}
	return got
}

func (w *workshop) must(t *testing.T, want string, args ...string) {
	t.Helper()
	out, errs, code := w.run(t, w.env, args...)
	if code != 0 || !strings.Contains(out, want) {
		t.Fatalf("%q: exit %d, want %q\n%s%s", args, code, want, out, errs)
	}
}

const projectFile = `{"mcpServers": {"jira": {"command": "./fake-server", "env": {"FAKE_ENV": "jira"}}}}`

// putProject is put for the project's file, with the server that it names: it runs in a sandbox, which
// sees the project alone.
func (w *workshop) putProject(t *testing.T, text string) string {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(exe, filepath.Join(w.project, "fake-server")); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return w.put(t, "project/.mcp.json", text)
}

func TestProjectFileStartsNothingUntilTrusted(t *testing.T) {
	w := newWorkshop(t)
	file := w.putProject(t, projectFile)
	if got := w.list(t); got["jira"] != "untrusted" {
		t.Errorf("jira is %s", got["jira"])
	}
	out, errs, code := w.run(t, w.env, "exec", "-c", "print(1)", "--server", "jira")
	if code == 0 || !strings.Contains(errs, "toolcell servers trust "+file) {
		t.Errorf("a run with it: exit %d\n%s%s", code, out, errs)
	}
	w.must(t, "jira: "+fakeServerEnv+"=… ", "servers", "trust", ".mcp.json")
	w.must(t, "API-1", "exec", "-c", "print(await mcp_jira.search_issues())", "--server", "jira")
	w.must(t, "nothing to do", "servers", "trust", file)
	w.putProject(t, projectFile+" ")
	if got := w.list(t); got["jira"] != "untrusted" {
		t.Errorf("after a change jira is %s", got["jira"])
	}
	if out, _, _ := w.run(t, w.env, "servers", "list"); !strings.Contains(out, "has changed since it was trusted") {
		t.Errorf("the list does not tell of the change:\n%s", out)
	}
	w.must(t, "trusted as it is now", "servers", "trust", file)
	w.must(t, "no longer trusted", "servers", "untrust", file)
	if got := w.list(t); got["jira"] != "untrusted" {
		t.Errorf("after untrust jira is %s", got["jira"])
	}
	for _, args := range [][]string{{"trust"}, {"trust", "/etc/passwd"}, {"trust", "missing.json"}} {
		if _, errs, code := w.run(t, w.env, append([]string{"servers"}, args...)...); code == 0 || !strings.HasPrefix(errs, "toolcell: ") {
			t.Errorf("servers %v: exit %d\n%s", args, code, errs)
		}
	}
}

func TestServersSetGivesWhatAFileAsksFor(t *testing.T) {
	w := newWorkshop(t)
	w.put(t, "home/.config/Code/User/mcp.json", `{"inputs": [{"id": "which one", "type": "promptString", "description": "Which server"}],
		"servers": {"asks": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "${input:which one}"}}, "bad": {"command": "FAKE_SERVER", "env": {"A": "${env:SECRET_TOKEN}"}}}}`)
	if got := w.list(t); got["asks"] != "needs_value" || got["bad"] != "needs_value" {
		t.Errorf("servers: %v", got)
	}
	out, _, _ := w.run(t, w.env, "servers", "list")
	if !strings.Contains(out, `"which one" (Which server): run toolcell servers set asks 'which one', or start toolcell with TOOLCELL_INPUT_WHICH_ONE set`) {
		t.Errorf("the list does not name the cure:\n%s", out)
	}
	set := w.shell(t, w.env, `printf 'search\n' | "$@"`, "servers", "set", "asks", "which one")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("set: %v\n%s", err, out)
	}
	w.must(t, "Found x", "servers", "call", "asks", "search", `{"query": "x"}`)
	info, err := os.Stat(filepath.Join(filepath.Dir(w.home), "state/state/values.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the values: %v, %v", info, err)
	}
	e := env{"MCP_BRIDGE_INPUT_WHICH_ONE": "github", "SECRET_TOKEN": "s3cret-v4lue"}
	maps.Copy(e, w.env)
	out, errs, code := w.run(t, e, "servers", "tools", "asks")
	if code != 0 || !strings.Contains(out, "create_issue") {
		t.Errorf("with the variable: exit %d\n%s%s", code, out, errs)
	}
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"list", "--log-level", "DEBUG"}} {
		if out, errs, _ := w.run(t, e, append([]string{"servers"}, args...)...); strings.Contains(out+errs, "s3cret") || strings.Contains(out+errs, "search") {
			t.Errorf("%v shows a value:\n%s%s", args, out, errs)
		}
	}
	w.must(t, "", "servers", "set", "asks", "which one", "--remove")
	if got := w.list(t); got["asks"] != "needs_value" {
		t.Errorf("after --remove: %v", got)
	}
	for want, args := range map[string][]string{
		`it names SECRET_TOKEN`: {"bad", "nope"}, "no server": {"nope", "x"}, "value is empty": {"bad", "SECRET_TOKEN"},
	} {
		if _, errs, code := w.run(t, w.env, append([]string{"servers", "set"}, args...)...); code != exitFail || !strings.Contains(errs, want) {
			t.Errorf("set %v: exit %d, want %q\n%s", args, code, want, errs)
		}
	}
}

// TestServersCheckStartsServersWhoseToolsAreKnown: a server that worked once and is broken
// since then is not ready.
func TestServersCheckStartsServersWhoseToolsAreKnown(t *testing.T) {
	w := newWorkshop(t)
	good := "exec FAKE_SERVER"
	script := w.put(t, "server.sh", good)
	w.put(t, "home/.cursor/mcp.json", fmt.Sprintf(`{"mcpServers": {"fresh": {"command": "sh", "args": [%q], "env": {"FAKE_ENV": "jira"}}}}`, script))
	w.must(t, "ready", "servers", "check", "fresh")
	w.put(t, "server.sh", "echo API key missing >&2; exit 3")
	if out, errs, code := w.run(t, w.env, "servers", "check", "fresh"); code != exitFail || !strings.Contains(out, "failed") || !strings.Contains(out, "API key missing") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if out, _, _ := w.run(t, w.env, "servers", "list"); !strings.Contains(out, "failed") {
		t.Errorf("the failure is not in the list:\n%s", out)
	}
	w.put(t, "server.sh", good)
	w.must(t, "ready", "servers", "check", "fresh")
	if out, _, _ := w.run(t, w.env, "servers", "list"); !strings.Contains(out, "idle") {
		t.Errorf("the failure is still in the list:\n%s", out)
	}
}

// onTerminal runs the binary on a terminal of its own, which is wide enough for any path.
func (w *workshop) onTerminal(t *testing.T, args ...string) *person {
	t.Helper()
	return atTerminal(t, w.command(t, w.env, args...), 300)
}

func TestTrustIsAskedOnceOnATerminal(t *testing.T) {
	w := newWorkshop(t)
	file := w.putProject(t, projectFile)
	p := w.onTerminal(t, "servers", "list")
	p.answers("[y/N]", "no")
	shown := p.end()
	for _, want := range []string{file, "jira: " + fakeServerEnv + "=…", "untrusted"} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown is no %q:\n%s", want, shown)
		}
	}
	if shown := w.onTerminal(t, "servers", "list").end(); strings.Contains(shown, "[y/N]") {
		t.Errorf("it asks again:\n%s", shown)
	}
	w.putProject(t, projectFile+"\n")
	p = w.onTerminal(t, "exec", "-c", "print(await mcp_jira.search_issues())", "--server", "jira")
	p.answers("[y/N]", "y")
	if shown := p.end(); !strings.Contains(shown, "API-1") {
		t.Errorf("after yes:\n%s", shown)
	}
	if got := w.list(t); got["jira"] != "idle" {
		t.Errorf("after yes jira is %s", got["jira"])
	}
}

func TestSecretIsNotShownWhileTyped(t *testing.T) {
	w := newWorkshop(t)
	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"a": {"command": "x", "env": {"A": "${env:THE_TOKEN}"}}}}`)
	p := w.onTerminal(t, "servers", "set", "a")
	p.answers("THE_TOKEN: ", "hush-hush")
	if shown := p.end(); strings.Contains(shown, "hush") || !strings.Contains(shown, "set: THE_TOKEN") {
		t.Errorf("shown:\n%s", shown)
	}
	if got := w.list(t); got["a"] != "idle" {
		t.Errorf("a is %s", got["a"])
	}
}
