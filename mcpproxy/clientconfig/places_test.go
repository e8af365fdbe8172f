package clientconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestNewPlacesInAProjectNeedTrust: also those that only the Python original reads.
func TestNewPlacesInAProjectNeedTrust(t *testing.T) {
	files := map[string]string{}
	for i, name := range []string{
		"claude_code_config.json", "claude_desktop_config.json", "opencode_config.json", "mcp-servers/a.json",
		".qwen/settings.json", ".qwen/settings.local.json", ".agents/mcp_config.json",
	} {
		files["project/"+name] = fmt.Sprintf(`{"mcpServers": {"s%d": {"command": "x%d"}}}`, i, i)
	}
	files["project/.vscode/settings.json"] = `{"mcp": {"servers": {"code": {"command": "code-server"}}}}`
	files["project/.amp/settings.json"] = `{"amp.mcpServers": {"amp": {"command": "amp-server"}}}`
	files["project/opencode_desktop_config.json"] = `{"mcp": {"open": {"type": "local", "command": ["open-server", "-x"]}}}` // as OpenCode writes it
	o := mcptest.Site(t, files)
	if c := clientconfig.Discover(o); len(c.Servers) != len(files) || len(c.Problems) > 0 {
		t.Errorf("trusted: %d servers of %d files, problems %v", len(c.Servers), len(files), c.Problems)
	}
	o.Trusted = nil
	c := clientconfig.Discover(o)
	if len(c.Servers) > 0 || len(c.Projects) != len(files) {
		t.Errorf("untrusted: servers %v, %d of %d files wait for trust", c.Servers, len(c.Projects), len(files))
	}
	for _, p := range c.Projects {
		if clientconfig.ProjectOf(p.Path) != o.Dir {
			t.Errorf("%s is of project %q", p.Path, clientconfig.ProjectOf(p.Path))
		}
	}
}

// TestSettingsOfAllKindsAreNoProblem: a large settings.json without servers, and
// files in mcp-servers that are none of toolcell's.
func TestSettingsOfAllKindsAreNoProblem(t *testing.T) {
	var settings strings.Builder
	settings.WriteString("{ // mine\n")
	for i := range 3000 {
		fmt.Fprintf(&settings, "\t\"some.setting.%d\": [true, {\"mcpServers\": {\"x\": {\"command\": \"x\"}}}], /* %d */\n", i, i)
	}
	o := mcptest.Site(t, map[string]string{
		"home/.config/Code/User/settings.json":     settings.String() + "\t\"mcp\": {\"servers\": {\"found\": {\"command\": \"f\"}},},\n}",
		"home/.config/VSCodium/User/settings.json": settings.String() + "}",
		"project/.vscode/settings.json":            `{"mcp": {"inputs": []}}`,
		"project/mcp-servers/package.json":         `{"name": "x"}`,
		"project/mcp-servers/pyproject.toml":       "[",
		"project/mcp-servers/values.yaml":          "{{ a }}",
	})
	c := clientconfig.Discover(o)
	names := []string{}
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"found"}) || len(c.Problems) > 0 {
		t.Errorf("servers %v, problems %v", names, c.Problems)
	}
}
