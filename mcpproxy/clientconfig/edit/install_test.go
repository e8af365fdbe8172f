package edit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// targetOf is the user's file of a client, in a home that has nothing.
func targetOf(t *testing.T, client string) Target {
	t.Helper()
	p, err := TargetOf(mcptest.Site(t, nil), client, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestInstallWritesWhatTheClientWould: an entry has the fields of its client, in their order.
func TestInstallWritesWhatTheClientWould(t *testing.T) {
	for client, want := range map[string]string{
		"goose": `extensions:
  toolcell:
    name: "toolcell"
    type: "stdio"
    cmd: "/opt/toolcell"
    args: ["serve"]
    envs: { "A": "1" }
    enabled: true
    timeout: 150
`,
		"opencode": `{
  "mcp": {
    "toolcell": {
      "type": "local",
      "command": ["/opt/toolcell", "serve"],
      "environment": {
        "A": "1"
      },
      "enabled": true
    }
  }
}
`,
	} {
		out, put, err := targetOf(t, client).Install(nil, Entry{Command: "/opt/toolcell", Env: map[string]string{"A": "1"}})
		if err != nil || put.Did != Added || string(out) != want {
			t.Errorf("%s: %+v, %v, got\n%s\nwant\n%s", client, put, err, out, want)
		}
	}
}

// TestInstallUpdatesWhatItMust of an entry that is there: the rest of it is the user's.
func TestInstallUpdatesWhatItMust(t *testing.T) {
	for name, tt := range map[string]struct{ client, before, after string }{
		"the command, with the user's arguments": {
			"cursor", `{"mcpServers": {"toolcell": {"command": "/gone/toolcell", "args": ["serve", "-v"], "env": {"A": "1", "B": "own"}}}}`,
			`{"mcpServers": {"toolcell": {"command": "/opt/toolcell", "args": ["serve", "-v"], "env": {"A": "1", "B": "own"}}}}`,
		},
		"a command without arguments": {
			"cursor", "{\n  \"mcpServers\": {\n    \"toolcell\": {\n      \"command\": \"/gone/toolcell\"\n    }\n  }\n}",
			"{\n  \"mcpServers\": {\n    \"toolcell\": {\n      \"command\": \"/opt/toolcell\",\n      \"args\": [\"serve\"],\n" +
				"      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n  }\n}",
		},
		"a command that is a list": {
			"opencode", `{"mcp": {"toolcell": {"type": "local", "command": ["/gone/toolcell", "serve", "-v"], "environment": {"A": "1"}}}}`,
			`{"mcp": {"toolcell": {"type": "local", "command": ["/opt/toolcell", "serve", "-v"], "environment": {"A": "1"}}}}`,
		},
		"a list without arguments": {
			"opencode", `{"mcp": {"toolcell": {"type": "local", "command": ["/gone/toolcell"], "environment": {"A": "1"}}}}`,
			`{"mcp": {"toolcell": {"type": "local", "command": ["/opt/toolcell", "serve"], "environment": {"A": "1"}}}}`,
		},
		"a variable in a table of its own": {
			"codex", "[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\n[mcp_servers.toolcell.env]\nB = 'own'\n",
			"[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\n[mcp_servers.toolcell.env]\nB = 'own'\nA = \"1\"\n",
		},
		"a variable beside others on one line": {
			"codex", "[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\nenv = { B = 'own', A = 'old' } # mine\n",
			"[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\nenv = { A = \"1\", B = \"own\" } # mine\n",
		},
		"the first variable": {
			"codex", "[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\n",
			"[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\n\n[mcp_servers.toolcell.env]\nA = \"1\"\n",
		},
	} {
		out, put, err := targetOf(t, tt.client).Install([]byte(tt.before), Entry{Command: "/opt/toolcell", Env: map[string]string{"A": "1"}})
		if err != nil || put.Did != Updated || string(out) != tt.after {
			t.Errorf("%s: %+v, %v, got\n%s\nwant\n%s", name, put, err, out, tt.after)
		}
	}
}

// TestInstallLeavesWhatIsRight as it is written, to the byte.
func TestInstallLeavesWhatIsRight(t *testing.T) {
	p := targetOf(t, "goose")
	self := filepath.Join(t.TempDir(), "toolcell")
	link := filepath.Join(t.TempDir(), "toolcell")
	mcptest.WriteFile(t, self, "")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ command, text string }{
		"a value in words of its own":   {self, "extensions:\n  toolcell:\n    cmd: " + self + "\n    args: [serve]\n    envs:\n      A: one # mine\n"},
		"another path to the same file": {self, "extensions:\n  toolcell:\n    cmd: " + link + "\n    args: [serve]\n    envs: {A: one}\n"},
		"no arguments":                  {"/gone/toolcell", "extensions:\n  toolcell:\n    cmd: /gone/toolcell\n    envs: {A: one}\n"},
	} {
		out, put, err := p.Install([]byte(tt.text), Entry{Command: tt.command, Env: map[string]string{"A": "one"}})
		if err != nil || put.Did != Unchanged || string(out) != tt.text {
			t.Errorf("%s: %+v, %v, got\n%s", name, put, err, out)
		}
	}
}

// TestInstallRefuses what it cannot do right, and returns no text to write.
func TestInstallRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ client, name, text, want string }{
		"a broken file":                    {"cursor", "", `{"mcpServers": `, "is not JSON"},
		"a file that is nested too deep":   {"cursor", "", `{"x": ` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, "nested more than"},
		"a name twice":                     {"cursor", "", `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, `"a" twice`},
		"a name twice, elsewhere":          {"cursor", "", `{"x": {"a": 1, "a": 2}, "mcpServers": {}}`, `"a" twice`},
		"a name that no entry can have":    {"cursor", "a/b\n", `{}`, "naming it"},
		"a name that is taken":             {"cursor", "x", `{"mcpServers": {"x": {"command": "other"}}}`, `"x" that starts something else (other)`},
		"a name that is taken, unreadable": {"cursor", "x", `{"mcpServers": {"x": 1}}`, `"x" that starts something else (unreadable)`},
		"no place for an entry":            {"codex", "", "mcp_servers = { a = { command = 'x' } }\n", "write it as a table"},
		"an entry in braces":               {"goose", "", "extensions: {toolcell: {cmd: /gone/toolcell, args: [serve]}}\n", "in braces"},
		"no place for arguments":           {"codex", "", "mcp_servers.toolcell.command = '/gone/toolcell'\n", "by hand"},
	} {
		out, _, err := targetOf(t, tt.client).Install([]byte(tt.text), Entry{Name: tt.name, Command: "/opt/toolcell"})
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != nil {
			t.Errorf("%s: %v, want %q; got %s", name, err, tt.want, out)
		}
	}
}

// TestUninstallTakesOnlyItsEntry out, and the place for servers with it if that was made for it.
func TestUninstallTakesOnlyItsEntry(t *testing.T) {
	const entry = `"toolcell": {"command": "/opt/toolcell", "args": ["serve"]}`
	for name, tt := range map[string]struct {
		client, name, before string
		withKey              bool
		gone, after, want    string
	}{
		"none":                   {"cursor", "", `{"mcpServers": {"a": {"command": "x"}} }`, true, "", `{"mcpServers": {"a": {"command": "x"}} }`, ""},
		"none of the name":       {"cursor", "other", `{"mcpServers": {` + entry + `} }`, true, "", `{"mcpServers": {` + entry + `} }`, ""},
		"with the key":           {"cursor", "", `{"x": 1, "mcpServers": {` + entry + `}}`, true, "toolcell", `{"x": 1}`, ""},
		"the key stays":          {"cursor", "", `{"x": 1, "mcpServers": {` + entry + `}}`, false, "toolcell", `{"x": 1, "mcpServers": {}}`, ""},
		"not beside others":      {"cursor", "", `{"mcpServers": {` + entry + `, "a": {"command": "x"}}}`, true, "toolcell", `{"mcpServers": { "a": {"command": "x"}}}`, ""},
		"a table, with the key":  {"codex", "", "a = 1\n\n[mcp_servers.toolcell]\ncommand = 'toolcell'\n", true, "toolcell", "a = 1\n", ""},
		"one that is in braces":  {"goose", "", "extensions: {toolcell: {cmd: toolcell}}\n", true, "", "", "in braces"},
		"of a file that is none": {"cursor", "", `{"mcpServers": `, false, "", "", "is not JSON"},
	} {
		out, gone, err := targetOf(t, tt.client).Uninstall([]byte(tt.before), tt.name, tt.withKey)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || gone != tt.gone || string(out) != tt.after {
			t.Errorf("%s: %q, %v, want %q; got\n%s", name, gone, err, tt.want, out)
		}
	}
}

// TestOthersAreNotThisProgram: an entry is this program's however it is started, but for
// what only its client runs and for the program that it replaces.
func TestOthersAreNotThisProgram(t *testing.T) {
	for name, tt := range map[string]struct {
		client, text, self string
		others             int
	}{
		"by a launcher":            {"cursor", `{"mcpServers": {"py": {"command": "npx", "args": ["-y", "toolcell"]}}}`, "py", 0},
		"with the original's file": {"cursor", `{"mcpServers": {"py": {"command": "/opt/toolcell", "args": ["serve", "/mcp-server-code-execution-mode/c"]}}}`, "py", 0},
		"the original":             {"cursor", `{"mcpServers": {"py": {"command": "uvx", "args": ["mcp-server-code-execution-mode"]}}}`, "", 1},
		"part of the client":       {"goose", "extensions:\n  toolcell: {type: builtin, name: toolcell, cmd: toolcell}\n", "", 1},
		"switched off":             {"cursor", `{"mcpServers": {"a": {"command": "x", "disabled": true}}}`, "", 0},
		"no place for servers":     {"cursor", `{"x": {"a": {"command": "x"}}}`, "", 0},
		"projects of others":       {"gemini", `{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}}`, "", 0},
		"projects of Claude":       {"claude-code", `{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}}`, "", 1},
		"projects, malformed":      {"claude-code", `{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}, "/q": 1}}`, "", 0},
	} {
		p := targetOf(t, tt.client)
		if self, others, err := p.Others([]byte(tt.text)); self != tt.self || others != tt.others || err != nil {
			t.Errorf("%s: %q and %d others, %v", name, self, others, err)
		}
	}
	p := targetOf(t, "cursor")
	for _, text := range []string{`{"mcpServers": `, `{"x": {"a": 1, "a": 2}, "mcpServers": {}}`} {
		if _, _, err := p.Others([]byte(text)); err == nil {
			t.Errorf("%s: its servers were counted", text)
		}
	}
	for text, want := range map[string]bool{``: false, `{`: false, `{"x": 1}`: false, `{"mcpServers": {}}`: true} {
		if got := p.HasKey([]byte(text)); got != want {
			t.Errorf("%q has a place for servers: %v", text, got)
		}
	}
	project, err := TargetOf(clientconfig.Options{Dir: "/p"}, "claude-code", true)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"mcpServers": {}, "projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}}`
	if _, others, err := project.Others([]byte(text)); others != 0 || err != nil {
		t.Errorf("a file of a project has %d servers of directories, %v", others, err)
	}
}

// TestInstallKnowsOldNamesOfVariables: an entry that has the value under one stays, and never gets
// another value under both.
func TestInstallKnowsOldNamesOfVariables(t *testing.T) {
	self := Entry{Command: "/opt/toolcell", Env: map[string]string{"NEW": "1"}, OldNames: map[string]string{"NEW": "OLD"}}
	for before, want := range map[string]string{
		`{"OLD": "1"}`:              `{"OLD": "1"}`,
		`{"OLD": "1", "NEW": "1"}`:  `{"OLD": "1", "NEW": "1"}`,
		`{"OLD": "2"}`:              `{"NEW": "1"}`,
		`{"OLD": "2", "NEW": "1"}`:  `{"NEW": "1"}`,
		`{"NEW": "2", "OTHER": ""}`: `{"NEW": "1", "OTHER": ""}`,
	} {
		text := func(env string) string {
			return `{"mcpServers": {"toolcell": {"command": "/opt/toolcell", "args": ["serve"], "env": ` + env + `}}}`
		}
		out, put, err := targetOf(t, "cursor").Install([]byte(text(before)), self)
		if err != nil || strings.Join(strings.Fields(string(out)), "") != strings.Join(strings.Fields(text(want)), "") || (put.Did == Unchanged) != (before == want) {
			t.Errorf("%s: %s, %+v, %v; want %s", before, out, put, err, want)
		}
	}
	const codex = "[mcp_servers.toolcell]\ncommand = '/opt/toolcell'\nargs = ['serve']\nenv = %s\n"
	out, _, err := targetOf(t, "codex").Install(fmt.Appendf(nil, codex, "{ OLD = '2', A = '3' }"), self)
	if want := fmt.Sprintf(codex, `{ A = "3", NEW = "1" }`); err != nil || string(out) != want {
		t.Errorf("on one line: %s, %v", out, err)
	}
}
