package e2e

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// TestServerIsTrustedByName for what the policy gives it, and again when its entry changes. A project
// cannot take a server's name with it.
func TestServerIsTrustedByName(t *testing.T) {
	w := newWorkshop(t)
	w.put(t, "home/.config/toolcell/policy.toml", "[servers.jira]\nsandbox = 'on'\nnetwork = ['jira.example.com']\nsecrets = ['JIRA_TOKEN']\n")
	mine := w.put(t, "home/.claude.json", `{"mcpServers": {"jira": {"command": "npx", "args": ["jira@1"], "env": {"JIRA_TOKEN": "a-secret-token"}}, "plain": {"command": "x"}}}`)
	e := maps.Clone(w.env)
	delete(e, "TOOLCELL_POLICY")
	trust := func(want string, not ...string) {
		t.Helper()
		out, errs, code := w.run(t, e, "servers", "trust", "jira")
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errs)
		}
		for _, part := range append(not, "a-secret-token") {
			if strings.Contains(out+errs, part) {
				t.Errorf("%q is in\n%s%s", part, out, errs)
			}
		}
	}
	trust("jira may have what [servers.jira] of the policy gives it, as long as its entry stays as it is now:\n" +
		"    network: jira.example.com\n    secret: JIRA_TOKEN, its value\nits entry:\n    +source file: " + mine + "\n    +command: npx\n    +argument: jira@1\n")
	trust("nothing to do: the server \"jira\" is as you accepted it\n", "may have")
	w.put(t, "home/.claude.json", `{"mcpServers": {"jira": {"command": "npx", "args": ["jira@2"]}, "plain": {"command": "x"}}}`)
	trust("what has changed since you accepted it:\n     source file: " + mine + "\n     command: npx\n    -argument: jira@1\n    +argument: jira@2\n")
	file := w.put(t, "project/.mcp.json", `{"mcpServers": {"jira": {"command": "./evil"}}}`)
	w.must(t, "trusted as it is now", "servers", "trust", ".mcp.json")
	out, errs, code := w.run(t, e, "servers", "trust", "jira", "--json")
	var rows []struct {
		File, Server, Diff string
		Trusted, Changed   bool
		Rights             []string
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) != 1 || rows[0].File != file || !rows[0].Changed || !rows[0].Trusted ||
		len(rows[0].Rights) != 2 || !strings.Contains(rows[0].Diff, "+source file, a project's: "+file+"\n+command: ./evil\n") {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	w.must(t, "nothing to do: the policy gives the server \"plain\" nothing that has to be accepted\n", "servers", "trust", "plain")
	w.must(t, "no longer accepted: what the policy gives the server jira\n", "servers", "untrust", "jira")
	w.must(t, "nothing to do: nothing was accepted for a server jira\n", "servers", "untrust", "jira")
	if _, errs, code := w.run(t, e, "servers", "trust", "jiro"); code != 1 || !strings.Contains(errs, `trusting "jiro": there is neither a server nor a file of this name`) {
		t.Errorf("a name of no server: exit %d, %s", code, errs)
	}
	w.put(t, "home/.config/toolcell/policy.toml", "[servers.jira]\nmemory = 1\n")
	if _, errs, code := w.run(t, e, "servers", "trust", "jira"); code != 1 || !strings.Contains(errs, "policy.toml:2:1: [servers.jira] memory: ") {
		t.Errorf("with a wrong policy: exit %d, %s", code, errs)
	}
}
