package e2e

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
)

const askedPolicy = `
[servers.github]
ask = "create_*"
[servers.gihub]
deny = "*"
[[servers.github.tools.create_issue.when]]
path = "repo"
op = "!="
value = "x/y"
[[servers.jra.tools.get_issue.when]]
path = "id"
op = "glob"
value = "SEC-*"
`

// TestServersCallAsks on a terminal, before anything is sent, and nowhere else.
func TestServersCallAsks(t *testing.T) {
	w := newWorkshop(t)
	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"github": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "github"}}}}`)
	policy := w.put(t, "home/policy.toml", askedPolicy)
	call := []string{"servers", "call", "--policy", policy, "github", "create_issue", `{"title": "Größe", "repo": "a/b"}`}

	out, errs, code := w.run(t, w.env, call...)
	want := `calling "create_issue" of server "github" needs the user's consent: policy ~/policy.toml, [servers.github] ask = "create_*"; ` +
		`policy ~/policy.toml, [[servers.github.tools.create_issue.when]] repo != "x/y"; on a terminal toolcell asks for it`
	if code != exitFail || out != "" || !strings.Contains(errs, want) {
		t.Errorf("without a terminal: exit %d\n%s%s", code, out, errs)
	}
	for _, answer := range []string{"n", "yes please\nn", "\x04"} {
		p := w.onTerminal(t, call...)
		p.answers("[y/n]", answer)
		if shown := p.end(); !strings.Contains(shown, "was not allowed by you") || strings.Contains(shown, "number") {
			t.Errorf("after %q:\n%s", answer, shown)
		}
	}
	p := w.onTerminal(t, call...)
	p.answers("[y/n]", "y")
	shown := p.end()
	for _, want := range []string{`{"repo":"a/b","title":"Gr\u00f6\u00dfe"}`, `[[servers.github.tools.create_issue.when]] repo != "x/y"`, `"number": 1`} {
		if !strings.Contains(shown, want) {
			t.Errorf("after y there is no %s:\n%s", want, shown)
		}
	}
	_, errs, code = w.run(t, w.env, "servers", "call", "--policy", policy, "github", "create_issue", `{"title": "a", "title": "b"}`)
	if code == exitOK || !strings.Contains(errs, `the argument "title" is there twice`) {
		t.Errorf("with a name twice: exit %d\n%s", code, errs)
	}
}

func TestSectionsOfThePolicyThatMatchNothingAreNamed(t *testing.T) {
	w := newWorkshop(t)
	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"github": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "github"}}}}`)
	policy := w.put(t, "home/policy.toml", askedPolicy)
	_, errs, code := w.run(t, w.env, "servers", "list", "--policy", policy)
	for _, want := range []string{"policy " + policy + ", [servers.gihub] matches none of these servers; did you mean \"github\"?", policy + ", [[servers.jra.tools.get_issue.when]] matches none of these servers"} {
		if code != exitOK || !strings.Contains(errs, want) {
			t.Errorf("exit %d\n%swant %s", code, errs, want)
		}
	}
	checks, _ := examined(t, w.command(t, w.env, "doctor", "--json", "--policy", policy))
	want := policy + ` says in 3 sections what code may call; [[servers.github.tools.create_issue.when]], [[servers.jra.tools.get_issue.when]] may ask you, ` +
		`depending on the arguments of a call; no server that toolcell finds here matches [servers.gihub] (did you mean "github"?), [[servers.jra.tools.get_issue.when]]`
	if got := checks["RC-POLICY"].Text; got != want || checks["RC-POLICY"].Status != doctor.CheckDegraded {
		t.Errorf("doctor says %s\nwant        %s", got, want)
	}
	policy = w.put(t, "home/policy.toml", "[servers.another-project]\nallow = []\n")
	checks, _ = examined(t, w.command(t, w.env, "doctor", "--json", "--policy", policy))
	want = policy + " says in 1 section what code may call; no server that toolcell finds here matches [servers.another-project]"
	if got := checks["RC-POLICY"].Text; got != want || checks["RC-POLICY"].Status != doctor.CheckOK {
		t.Errorf("doctor says %s\nwant        %s", got, want)
	}
}
