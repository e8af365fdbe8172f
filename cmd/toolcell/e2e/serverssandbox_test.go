package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A triedServer is what servers sandbox says of a server.
type triedServer struct {
	Works          bool
	Tools          int
	Error, Section string
	Rights, Stderr []string
	Refused        []struct{ Host string }
	Home           string
}

// tryServer runs servers sandbox.
func (w *workshop) tryServer(t *testing.T, e env, name string) triedServer {
	t.Helper()
	out, errs, code := w.run(t, e, "servers", "sandbox", name, "--json")
	var rows []triedServer
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 || code == 0 != rows[0].Works {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	return rows[0]
}

// TestServerIsTriedInASandbox: what it lacks is proposed, and with that in the policy it works.
func TestServerIsTriedInASandbox(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	e := maps.Clone(w.env)
	delete(e, "TOOLCELL_POLICY")
	w.put(t, "home/MCPs/search.json", `{"command": "FAKE_SERVER", "env": {"FAKE_ENV": "search"}}`)
	first := w.tryServer(t, e, "search")
	if first.Works || len(first.Rights) > 0 || !strings.Contains(first.Section, "[servers.search]\nsandbox = \"on\"\nmounts = [{ source = ") {
		t.Errorf("without its program: %+v", first)
	}
	policy := w.put(t, "home/.config/toolcell/policy.toml", strings.Replace(first.Section, `"on"`, `"off"`, 1))
	if second := w.tryServer(t, e, "search"); !second.Works || second.Tools != 1 || len(second.Rights) != 1 || len(second.Refused) > 0 || second.Section != first.Section {
		t.Errorf("with its program: %+v", second)
	}
	if kept, err := os.ReadDir(filepath.Join(e["TOOLCELL_STATE_DIR"], "rights")); len(kept) > 0 {
		t.Errorf("a try has accepted %v, %v", kept, err)
	}
	w.put(t, "home/.config/toolcell/policy.toml", first.Section)
	w.must(t, "Found x", "servers", "call", "search", "search", "query=x")
	w.must(t, "has all that is known to be needed", "servers", "sandbox", "search")

	// An entry that was not accepted is tried with nothing.
	w.put(t, "home/MCPs/search.json", `{"command": "FAKE_SERVER", "args": ["other"], "env": {"FAKE_ENV": "search"}}`)
	if other := w.tryServer(t, e, "search"); other.Works || len(other.Rights) > 0 || other.Section != first.Section {
		t.Errorf("as another entry: %+v", other)
	}
	if now, err := os.ReadFile(policy); string(now) != first.Section {
		t.Errorf("the policy is now %q, %v", now, err)
	}

	home := first.Home
	if _, errs, code := w.run(t, e, "servers", "sandbox", "search", "--empty-home"); code == 0 || !strings.Contains(errs, "needs --yes") {
		t.Errorf("without a question: exit %d, %s", code, errs)
	}
	w.must(t, "removed: "+home, "servers", "sandbox", "search", "--empty-home", "--yes")
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
}

// pythonAnswers is a server with one tool, in Python.
const pythonAnswers = `import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if m["method"] == "initialize":
        answer = {"result": {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "needy", "version": "1"}}}
    if m["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **answer}), flush=True)
`

// TestRefusedHostIsProposed, beside what the server's section has.
func TestRefusedHostIsProposed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := newWorkshop(t)
	e := s.env("", nil)
	maps.Copy(e, w.env)
	delete(e, "TOOLCELL_POLICY")
	delete(e, "XDG_CONFIG_HOME")
	script := w.put(t, "needy.py", "import urllib.request\nurllib.request.urlopen('http://api.test/hello').read()\n"+pythonAnswers)
	w.put(t, "home/MCPs/needy.json", fmt.Sprintf(`{"command": "python3", "args": [%q]}`, script))
	w.put(t, "home/.config/toolcell/policy.toml", fmt.Sprintf("[servers.needy]\nsandbox = 'on'\nmounts = [{ source = %q }]\nnetwork = { allow = ['other.test'], via = 'env' }\n", script))
	first := w.tryServer(t, e, "needy")
	if first.Works || len(first.Refused) != 1 || first.Refused[0].Host != "api.test:80" || len(first.Stderr) == 0 ||
		!strings.Contains(first.Section, `network = { allow = ["other.test", "api.test"], via = "env" }`) {
		t.Errorf("without the host: %+v", first)
	}
	out, _, code := w.run(t, e, "servers", "check", "needy")
	if text := strings.Join(strings.Fields(out), " "); code == 0 || !strings.Contains(text, "refused api.test:80; to allow it, add it to [servers.needy] network of") {
		t.Errorf("check: exit %d, %s", code, out)
	}
	w.put(t, "home/.config/toolcell/policy.toml", first.Section)
	if second := w.tryServer(t, e, "needy"); !second.Works || second.Tools != 1 || len(second.Refused) > 0 || second.Section != first.Section {
		t.Errorf("with the host: %+v", second)
	}
}

// TestPackagesOfAServerAreUpdated when the user accepts that, and not before.
func TestPackagesOfAServerAreUpdated(t *testing.T) {
	t.Parallel()
	needPyPI(t) // for uv
	w := newWorkshop(t)
	e := maps.Clone(w.env)
	delete(e, "TOOLCELL_POLICY")
	if _, errs, code := w.run(t, e, "packages", "add", "six"); code != 0 {
		t.Fatal(errs)
	}
	x := startIndex(t)
	files := map[string]string{"greeter.py": "def main():\n    exec(" + fmt.Sprintf("%q", pythonAnswers) + ")\n", "greeter-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreeter = greeter:main\n"}
	x.put(t, "greeter", files)
	x.put(t, "words", nil)
	w.put(t, "home/MCPs/greeter.json", `{"command": "uvx", "args": ["greeter"]}`)
	packages := fmt.Sprintf("[packages]\nindex = %q\n", x.URL+"/simple")
	w.put(t, "home/.config/toolcell/policy.toml", packages)
	if _, errs, code := w.run(t, e, "servers", "update", "greeter"); code == 0 || !strings.Contains(errs, `updating "greeter": it does not run in a sandbox`) {
		t.Errorf("on the host: exit %d, %s", code, errs)
	}
	w.put(t, "home/.config/toolcell/policy.toml", packages+"[servers.greeter]\nsandbox = 'on'\n")
	w.must(t, "command: greeter of PyPI; 1 package locked", "servers", "sandbox", "greeter")
	w.must(t, "greeter: nothing newer", "servers", "update", "greeter")
	files["greeter-1.0.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\nRequires-Dist: words\n"
	x.put(t, "greeter", files)
	out, errs, code := w.run(t, e, "servers", "update", "greeter")
	if code == 0 || out != "greeter:\n  greeter 1.0, with other files\n  + words 1.0\n" || !strings.Contains(errs, "nothing was changed: without a terminal to ask on, servers update needs --yes") {
		t.Errorf("without an answer: exit %d, %s%s", code, out, errs)
	}
	w.must(t, "1 package locked", "servers", "sandbox", "greeter")
	w.must(t, "greeter: updated, from its next start on", "servers", "update", "greeter", "--yes")
	w.must(t, "2 packages locked", "servers", "sandbox", "greeter")
}
