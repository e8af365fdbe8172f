package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/doctor"
)

// policyFolder makes a folder for XDG_CONFIG_HOME, and says how to write the
// policy in it.
func policyFolder(t *testing.T) (dir string, write func(text string)) {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "xdg-")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "toolcell"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, func(text string) {
		t.Helper()
		file := filepath.Join(dir, "toolcell", "policy.toml")
		if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

// tryCall calls a tool and prints what becomes of it.
const tryCall = "from mcp import runtime\ntry: print((await mcp_github.create_issue(title='t')).title)\nexcept runtime.MCPError as e: print(e)"

// TestPolicyIsAskedAndReadAgain changes the file below a server that runs.
//
//test:mainjob
func TestPolicyIsAskedAndReadAgain(t *testing.T) {
	config := fakeConfig(t, nil)
	h := firstHost(t)
	dir, write := policyFolder(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config, "XDG_CONFIG_HOME": dir})
	c.python(t, tryCall, "github").want(t, "t")
	for _, tt := range []struct{ policy, want string }{
		{"[servers.github]\ndeny = 'create_*'", `policy.toml, [servers.github] deny = "create_*": calling "create_issue" of server "github" is not allowed`},
		{"[default]\nreadOnly = true", `policy.toml, [default] readOnly = true: calling "create_issue" of server "github" is not allowed`},
		{"[default]\nreadonly = true", `policy.toml:2:1: [default] readonly: there is no such key`},
		{"[servers.github.tools.create_issue]\ncallsPerMinute = 1", "t"},
		{"[servers.github.tools.create_issue]\ncallsPerMinute = 1 # still", `callsPerMinute = 1: "create_issue" of server "github" was called once within the last minute`},
		{"[servers.jira]\ndeny = '*'", "t"},
	} {
		write(tt.policy)
		if r := c.python(t, tryCall, "github"); r.isError || !strings.Contains(r.text, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.policy, r.text, tt.want)
		}
	}
	// A tool that may not be called can be read about, unless nothing of its server
	// may be used: that would start the server.
	const read = "from mcp import runtime\nprint((await runtime.query_tool_docs('jira', 'get_issue'))['tool'])"
	if r := c.python(t, read); !strings.Contains(r.text, `policy.toml, [servers.jira] deny = "*": using server "jira" is not allowed`) {
		t.Errorf("got %s", r.text)
	}
	c.python(t, "from mcp import runtime\nprint([s.name for s in runtime.discovered_servers(detailed=True) if s.status == 'denied'], "+
		"{d.server for d in await runtime.search_tool_docs('get an issue of jira', limit=20)} & {'jira'})").want(t, "['jira'] set()")
	write("[servers.jira]\ndeny = 'get_*'")
	c.python(t, read).want(t, "get_issue")
}

func TestPolicyOnTheCommandLine(t *testing.T) {
	h := firstHost(t)
	dir, write := policyFolder(t)
	write("[servers.github]\nallow = []")
	file := filepath.Join(dir, "toolcell", "policy.toml")
	slip := filepath.Join(dir, "slip.toml")
	if err := os.WriteFile(slip, []byte("[servers.gihub]\ndeny = '*'"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(dir, "wrong.toml")
	if err := os.WriteFile(wrong, []byte("[server.github]\ndeny = '*'"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil)}
	const call = "await mcp_github.create_issue(title='t')"
	for name, tt := range map[string]struct {
		args []string
		want string
		code int
	}{
		"exec":          {[]string{"exec", "--policy", file, "--server", "github", "-c", call}, `[servers.github] allow = []: using server "github" is not allowed`, exitFail},
		"exec, no file": {[]string{"exec", "--policy", file + "x", "--server", "github", "-c", call}, "setting --policy: " + file + "x does not exist", exitUsage},
		"servers call":  {[]string{"servers", "call", "--policy", file, "github", "create_issue", `{"title": "t"}`}, `[servers.github] allow = []`, exitFail},
		"a slip":        {[]string{"servers", "list", "--policy", slip}, slip + ", [servers.gihub] matches none of these servers", exitOK},
		"an error":      {[]string{"servers", "list", "--policy", wrong}, "nothing may be called until the policy is fixed: policy " + wrong + ":1:2: server: there is no such key", exitOK},
		"other server":  {[]string{"servers", "call", "--policy", file, "odd", "pid"}, "", exitOK},
	} {
		if _, errs, code := h.run(t, e, tt.args...); code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit %d\n%swant exit %d, %s", name, code, errs, tt.code, tt.want)
		}
	}
}

// TestExecSaysOnceWhatIsWrongWithThePolicy, whether the run fails of it or not.
func TestExecSaysOnceWhatIsWrongWithThePolicy(t *testing.T) {
	h := firstHost(t)
	dir, write := policyFolder(t)
	write("[servers.a]\ndeny = 1")
	file := filepath.Join(dir, "toolcell", "policy.toml")
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil)}
	for name, args := range map[string][]string{
		"it does not matter": {"-c", "1"},
		"a call":             {"--server", "github", "-c", "await mcp_github.create_issue(title='t')"},
		"it is caught":       {"--server", "github", "-c", "try: await mcp_github.create_issue(title='t')\nexcept Exception: pass"},
		"a host":             {"--server", "https://x.test", "-c", "1"},
		"a package":          {"-c", "# /// script\n# dependencies = ['six']\n# ///"},
	} {
		_, errs, _ := h.run(t, e, append([]string{"exec", "--policy", file}, args...)...)
		if n := strings.Count(errs, "[servers.a] deny: it must be a string or a list of strings, not a number"); n != 1 {
			t.Errorf("%s: it is said %d times:\n%s", name, n, errs)
		}
	}
}

func TestDoctorReadsThePolicy(t *testing.T) {
	h := firstHost(t)
	dir, write := policyFolder(t)
	e := env{"XDG_CONFIG_HOME": dir}
	if checks, _ := examined(t, h.command(t, e, "doctor", "--json")); checks["RC-POLICY"].Code != "" {
		t.Errorf("without a file: %+v", checks["RC-POLICY"])
	}
	write("[default]\ndeny = '*'")
	if checks, _ := examined(t, h.command(t, e, "doctor", "--json")); checks["RC-POLICY"].Status != doctor.CheckOK || !strings.Contains(checks["RC-POLICY"].Text, "toolcell/policy.toml says in 1 section ") {
		t.Errorf("with a good file: %+v", checks["RC-POLICY"])
	}
	write("[servers.a]\ndeny = 1")
	if checks, _ := examined(t, h.command(t, e, "doctor", "--json")); checks["RC-POLICY"].Status != doctor.CheckDegraded || !strings.Contains(checks["RC-POLICY"].Text, "policy.toml:2:1: [servers.a] deny: it must be a string or a list of strings, not a number") {
		t.Errorf("with a broken file: %+v", checks["RC-POLICY"])
	}
}

// TestFailedRunListsItsCalls has runs end badly after real servers did their
// work, one of them while a call is in the air.
func TestFailedRunListsItsCalls(t *testing.T) {
	t.Parallel()
	config := fakeConfig(t, nil)
	h := firstHost(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
	const work = "await mcp_github.create_issue(title='first', body='b' * 200)\ntry: await mcp_odd.fail()\nexcept Exception: pass\n"
	c.python(t, work+"print('servers run')", "*").want(t, "servers run")
	const issue = "\ncalls that have taken effect; a retry should not repeat what they changed:\n  github.create_issue {\"title\": \"first\", \"body\": \"bbb"
	const open = "\ncalls without an answer, which may have taken effect:\n  odd."
	for name, tt := range map[string]struct{ code, status, unknown string }{
		"timeout": {"await mcp_odd.hang()", "timeout", "hang {}"},
		"error":   {"1/0", "error", ""},
		"lost":    {"await mcp_odd.die()", "error", "die {}"},
		"killed":  {"import os; os.kill(os.getpid(), 9)", "error", ""},
		"not awaited": {
			"import asyncio\nn = await mcp_odd.hanging()\nt = asyncio.ensure_future(mcp_odd.hang(id='7'))\n" +
				"while await mcp_odd.hanging() == n: await asyncio.sleep(0.05)\nraise SystemExit(3)", "error", `hang {"id": "7"}`,
		},
	} {
		limit := slow(100 * time.Second)
		if tt.status == "timeout" {
			limit = slow(12 * time.Second)
		}
		r := c.call(t, map[string]any{"code": work + tt.code, "servers": []string{"*"}, "timeout": int(limit / time.Second)})
		if r.status() != tt.status || !strings.Contains(r.text, issue) || tt.unknown != "" && !strings.Contains(r.text, open+tt.unknown) || strings.Contains(r.text, "odd.fail") {
			t.Errorf("%s: %s", name, r.text)
		}
		calls, _ := r.fields["calls"].([]any)
		first, _ := calls[0].(map[string]any)
		if want := 1 + strings.Count(r.text, "  odd."); len(calls) != want || first["server"] != "github" || first["tool"] != "create_issue" || first["outcome"] != "done" {
			t.Errorf("%s: fields %v", name, r.fields)
		}
	}
	c.python(t, work+"print('fine')", "*").want(t, "fine")
}
