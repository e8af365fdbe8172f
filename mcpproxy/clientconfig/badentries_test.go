package clientconfig_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestBadEntryOfAClientIsReported with the words of the client's own file.
func TestBadEntryOfAClientIsReported(t *testing.T) {
	const (
		bare     = "home/MCPs/x.json"
		codex    = "home/.codex/config.toml"
		cont     = "home/.continue/config.yaml"
		cursor   = "home/.cursor/mcp.json"
		gemini   = "home/.gemini/settings.json"
		goose    = "home/.config/goose/config.yaml"
		opencode = "home/.config/opencode/opencode.json"
		vscode   = "home/.config/Code/User/mcp.json"
	)
	entry := map[string]string{ // files of an entry x
		codex: "[mcp_servers.x]\n%", cont: "mcpServers:\n  - {name: x, %}\n", cursor: `{"mcpServers":{"x":{%}}}`,
		gemini: `{"mcpServers":{"x":{%}}}`, goose: "extensions: {x: {%}}\n",
		opencode: `{"mcp":{"x":{%}}}`, vscode: `{"servers":{"x":{%}}}`, bare: `{%}`,
	}
	for _, tt := range []struct{ file, fields, want string }{
		{codex, `env_vars = "TOKEN"` + "\ncommand = 'c'", `"env_vars" is not a list of names`},
		{codex, `env_vars = ["TOKEN", "A B"]` + "\ncommand = 'c'", `"env_vars" has "A B", which is no name for a variable`},
		{goose, `cmd: c, env_keys: [5]`, `"env_keys" has "", which is no name for a variable`},
		{codex, `url = 'https://x'` + "\nbearer_token_env_var = 'A B'", `"A B" is no name for a variable`},
		{codex, `url = 'https://x'` + "\nenv_http_headers = {X = 'A-B'}", `"A-B" is no name for a variable`},
		{codex, "command = 'sh'\nargs = ['-c', 'exec x ${A}']\nenv = {B = '${C}'}", `"B" in "env": ${C} is not supported here`},
		{goose, `args: [a]`, `has no "cmd" and no "uri"`},
		{goose, `cmd: c, env: {A: b}`, `has "env", which does nothing; did you mean "envs"?`},
		{codex, "url = 'https://x'\nheaders = {A = 'b'}", `has "headers", which does nothing; did you mean "http_headers"?`},
		{cont, `type: sse, url: "https://x", requestOptions: [a]`, `"requestOptions" is not an object`},
		{cont, `type: sse, url: "https://x", requestOptions: {headers: [a]}`, `"headers" is not an object`},
		{cont, `type: sse, url: "https://x", requestOptions: {headers: {A: [b]}}`, `"A" in "headers" is not a string`},
		{cont, `command: c, args: ["${{ github.token }}"]`, `${{ github.token }} is not supported here, only ${NAME}, ${NAME:-default}, ${{ secrets.NAME }}`},
		{cursor, `"command":"c","args":["${{ secrets.TOKEN }}"]`, `${{ secrets.TOKEN }} is not supported here, only ${env:NAME}`},
		{cursor, `"command":"c","args":["${env:A B}"]`, `item 1 of "args": "A B" is no name for a variable`},
		{vscode, `"command":"c","args":["${input:}"]`, `item 1 of "args": "" is no name for an input`},
		{opencode, `"type":"local","command":["c","{file: }"]`, `item 2 of "command": names no file`},
		{opencode, `"type":"local","command":["c","{file:/}"]`, `item 2 of "command": the file /: is a directory`},
		{opencode, `"type":"local","command":["c","{file:~/latin1}"]`, `/latin1 is not text`},
		{cursor, `"command":"c","envFile":"~/latin1"`, `/latin1: line 1 is not NAME=value`},
		{cursor, `"command":"c","timeout":"90","startup_timeout_sec":"90"`, `"startup_timeout_sec" is not a number of seconds`},
		{gemini, `"command":"c","timeout":"90"`, `"timeout" is not a number of milliseconds`},
		{gemini, `"command":"c","excludeTools":"write"`, `"excludeTools" is not a list`},
		{gemini, `"command":"c","includeTools":[["read"]]`, `item 1 of "includeTools" is not a string`},
		{bare, `"type":"websocket","url":"https://x"`, `transport "websocket" is not supported; stdio, http and sse are`},
		{bare, `"transport":"pigeon","url":"https://x"`, `transport "pigeon" is unknown`},
	} {
		text := strings.Replace(entry[tt.file], "%", tt.fields, 1)
		o := mcptest.Site(t, map[string]string{tt.file: text, "home/latin1": "caf\xe9\n"})
		c := clientconfig.Discover(o)
		if len(c.Servers) != 0 || len(c.Problems) != 1 || c.Problems[0].Server != "x" || c.Problems[0].Status != config.StatusSkipped ||
			!strings.Contains(c.Problems[0].Reason, tt.want) || c.Problems[0].Source != filepath.Join(filepath.Dir(o.Home), tt.file) {
			t.Errorf("%s: servers = %s, problems = %v, want %q", tt.fields, names(c), c.Problems, tt.want)
		}
	}
}

// TestEmptyKeysAreNoMistake: null is what is left when someone takes a value out.
func TestEmptyKeysAreNoMistake(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command":"c","args":["a"],"arguments":["b"]}`: "",
		`{"command":"c","arguments":null,"args":null}`:   "",
		`{"comand":null}`: `has no "command" and no "url"`,
	} {
		c := clientconfig.Discover(mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"x":` + entry + `}}`}))
		if want == "" && names(c) != "x=c" || want != "" && (len(c.Problems) != 1 || c.Problems[0].Reason != want) {
			t.Errorf("%s: servers = %s, problems = %v, want %q", entry, names(c), c.Problems, want)
		}
	}
}

// TestMissingValueIsAskedForBeforeAnythingElse: what it stands for cannot be judged yet.
func TestMissingValueIsAskedForBeforeAnythingElse(t *testing.T) {
	for _, entry := range []string{`{"command":"${NOPE}"}`, `{"url":"${NOPE}"}`, `{"url":"${NOPE}/mcp"}`} {
		c := clientconfig.Discover(mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"x":` + entry + `}}`}))
		if len(c.Problems) != 1 || c.Problems[0].Status != config.StatusNeedsValue ||
			!strings.Contains(c.Problems[0].Reason, "needs the variable NOPE") {
			t.Errorf("%s: problems = %+v", entry, c.Problems)
		}
	}
}

// TestNoValueIsAskedForInVain: not for an entry that is switched off, nor for one that no
// value makes right.
func TestNoValueIsAskedForInVain(t *testing.T) {
	for _, entry := range []string{
		`{"command":"${NOPE}","disabled":true}`, `{"command":"c","args":["${NOPE}"],"enabled":false}`,
		`{"type":"ws","url":"wss://x/${NOPE}"}`,
	} {
		c := clientconfig.Discover(mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"x":` + entry + `}}`}))
		if len(c.Inputs) != 0 || len(c.Problems) != 1 || c.Problems[0].Status == config.StatusNeedsValue {
			t.Errorf("%s: inputs = %+v, problems = %+v", entry, c.Inputs, c.Problems)
		}
	}
}
