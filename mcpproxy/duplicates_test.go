package mcpproxy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestServerInSeveralFilesCountsOnce(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"home/.claude.json":                      `{"mcpServers":{"github":{"command":"npx","args":["-y","gh"],"env":{"T":"1"}},"web":{"type":"http","url":"https://x/mcp"}}}`,
		"home/.cursor/mcp.json":                  `{"mcpServers":{"github":{"command":"npx","args":["gh"],"env":{"T":"1"},"type":"stdio"},"gh":{"command":"npx","args":["gh"],"env":{"T":"1"}},"web":{"url":"https://x/mcp/"}}}`,
		"home/.kiro/settings/mcp.json":           `{"mcpServers":{"github":{"command":"npx","args":["gh"],"env":{"T":"2"}},"work":{"command":"npx","args":["gh"],"env":{"T":"2"}}}}`,
		"home/MCPs/two.json":                     `{"mcpServers":{"one":{"command":"same"},"two":{"command":"same"}}}`,
		"home/.codeium/windsurf/mcp_config.json": `{"mcpServers":{"off":{"command":"x","disabled":true}}}`,
		"home/.lmstudio/mcp.json":                `{"mcpServers":{"off":{"command":"x"}}}`,
	})
	c := clientconfig.Discover(o)
	if got, want := names(c), "one=same two=same github=npx web= work=npx off=x"; got != want {
		t.Errorf("servers = %s, want %s", got, want)
	}
	cursor := filepath.Join(o.Home, ".cursor/mcp.json")
	for _, s := range c.Servers[2:4] {
		if !slices.Equal(s.Also, []string{cursor}) {
			t.Errorf("%s is also in %q, want %s", s.Name, s.Also, cursor)
		}
	}
	p := New(c, Options{})
	defer p.Close()
	_, err := p.Lookup("gh")
	mcptest.WantError(t, err, `"gh" cannot be used`, `it is the same as "github"`, "so use that name", cursor)
	var rows []string
	for _, st := range p.Servers() {
		rows = append(rows, st.Name+" "+st.Status)
	}
	if want := "one idle, two idle, github idle, web idle, work idle, off idle, off disabled, github skipped"; strings.Join(rows, ", ") != want {
		t.Errorf("rows: %s, want %s", strings.Join(rows, ", "), want)
	}
	last := p.Servers()[len(rows)-1]
	if !strings.Contains(last.Error, "shadowed by another server of this name in "+filepath.Join(o.Home, ".claude.json")) || last.Client != "kiro" {
		t.Errorf("the other github: %+v", last)
	}
}

func TestSwitchedOffIsOffInEveryFileBelow(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/.mcp.json":     `{"mcpServers":{"a":{"command":"x","disabled":true}}}`,
		"home/.claude.json":     `{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}},"projects":{"PROJECT":{"mcpServers":{"b":{"command":"x","disabled":true}}}}}`,
		"home/.cursor/mcp.json": `{"mcpServers":{"a":{"command":"x"}}}`,
	})
	c := clientconfig.Discover(o)
	if len(c.Servers) != 0 {
		t.Errorf("servers = %s", names(c))
	}
	_, err := New(c, Options{}).Lookup("a")
	mcptest.WantError(t, err, "disabled", ".mcp.json")
}

func TestClientsFoldersMayBeElsewhere(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"claude/.claude.json":         `{"mcpServers":{"claude":{"command":"c"}}}`,
		"codex/config.toml":           "[mcp_servers.codex]\ncommand = 'c'\n",
		"xdg/opencode/opencode.json":  `{"mcp":{"open":{"type":"local","command":["c"]}}}`,
		"xdg/goose/config.yaml":       "extensions: {goose: {type: stdio, cmd: c}}\n",
		"custom.json":                 `{"mcp":{"custom":{"type":"local","command":["c"]}}}`,
		"cline.json":                  `{"mcpServers":{"cline":{"command":"c","args":["1"]}}}`,
		"home/.claude.json":           `{"mcpServers":{"wrong":{"command":"w"}}}`,
		"home/.codex/config.toml":     "[mcp_servers.wrong]\ncommand = 'w'\n",
		"home/.codex/config.json":     `{"mcpServers":{"wrong":{"command":"w"}}}`,
		"home/.windsurf/config.json":  `{"mcpServers":{"wrong":{"command":"w"}}}`,
		"home/.opencode/config.json":  `{"mcp":{"wrong":{"type":"local","command":["w"]}}}`,
		"home/.config/goose/conf.yml": "extensions: {wrong: {type: stdio, cmd: w}}\n",
	})
	root := filepath.Dir(o.Home)
	env := map[string]string{
		"CLAUDE_CONFIG_DIR": root + "/claude", "CODEX_HOME": root + "/codex", "XDG_CONFIG_HOME": root + "/xdg", "OPENCODE_CONFIG": "../custom.json",
		"CLINE_MCP_SETTINGS_PATH": root + "/cline.json", "OPENCODE_CONFIG_CONTENT": `{"mcp":{"inline":{"type":"local","command":["i"]}}}`,
	}
	o.Getenv = func(k string) string { return env[k] }
	c := clientconfig.Discover(o)
	var got []string
	for _, s := range c.Servers {
		got = append(got, s.Name)
	}
	// One command under several names, so all but the first count as the same.
	if want := []string{"claude", "inline", "cline"}; !slices.Equal(got, want) {
		t.Errorf("servers = %q, want %q", got, want)
	}
	if len(c.Servers[0].Also) != 4 {
		t.Errorf("also = %q", c.Servers[0].Also)
	}
}
