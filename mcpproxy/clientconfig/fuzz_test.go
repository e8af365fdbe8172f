package clientconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/seeds"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// FuzzDiscover reads whatever bytes stand in a config file. It must not panic,
// and every server it finds has what the rest of the program relies on.
func FuzzDiscover(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"K":"v"}}}}`,
		`{"servers":{"a b":{"command":"${HOME}/x"},"class":{"command":"x"},"2":{"command":"x"}}}`,
		`{"mcpServers":{"a":{"command":5},"":{"command":"x"},"A":{"command":"x"},"a":{"url":"http://x"}}}`,
		`{"command":"x"}`, `[]`, `null`, `{`, "\xff", `{"projects":{"/":{"mcpServers":{"p":{"command":"x"}}}}}`,
		`{"mcpServers":{"a":{"command":"${X:-${Y}}"},"b":{"command":"$X"},"c":{"command":"${"}}}`,
		`{"mcp":{"servers":{"a":{"type":"local","command":["x","{env:SET}","{file:.env}"],"timeout":{"startup":1}}}}, /* c */}`,
		`{"inputs":[{"id":"i","options":["a",{"value":"b"}]}],"servers":{"a":{"command":"x","args":["${input:i}"],"envFile":"${userHome}/.env"}}}`,
		"[mcp_servers.a]\ncommand = 'x'\nenv_vars = ['SET', {name='SET'}]\n[mcp_servers.b]\nurl = 'http://x'\nbearer_token_env_var = 'SET'\n",
		"extensions:\n  a: &a {type: stdio, cmd: x, envs: {A: $SET}}\n  b: {<<: *a, cmd: y}\nmcpServers: [{name: n, command: x}]\n",
		"a: &a [x, x]\nb: &b [*a, *a]\nmcpServers: *b\n", "{a: *b}", "&a [*a]", "<<: [1]\n", "A=1\nB=\"x\ny\"\nC='z'\n",
	} {
		f.Add([]byte(seed))
	}
	for _, file := range seeds.Configs(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		home := t.TempDir()
		for _, name := range []string{
			".claude.json", "extra.json", ".codex/config.toml", ".config/goose/config.yaml", ".config/opencode/opencode.json", ".config/zed/settings.json",
			".config/Code/User/mcp.json", ".env", ".continue/config.yaml", ".config/crush/crush.json", "MCPs/a.toml", "MCPs/b.yaml", "project/.mcp.json",
		} {
			path := filepath.Join(home, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		found := clientconfig.Discover(clientconfig.Options{
			Home: home, Dir: filepath.Join(home, "project"), Extra: filepath.Join(home, "extra.json"),
			Getenv: func(name string) string { return map[string]string{"SET": "value"}[name] },
		})
		for _, p := range found.Problems {
			if p.Server != "" && p.Status == config.StatusUntrusted && len(found.Projects) != 1 {
				t.Errorf("an untrusted entry without its project: %+v", p)
			}
		}
		names, aliases := map[string]bool{}, map[string]bool{}
		for _, s := range found.Servers {
			if s.Name == "" || s.Command == "" && s.URL == "" || names[s.Name] || aliases[s.Alias] || !pyname.IsIdentifier(s.Alias) {
				t.Errorf("server %+v", s)
			}
			names[s.Name], aliases[s.Alias] = true, true
		}
		for _, p := range found.Problems {
			if p.Reason == "" {
				t.Errorf("problem without a reason: %+v", p)
			}
		}
	})
}
