package clientconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// BenchmarkDiscover reads what a user of many clients has, among it Claude's
// file with 5 MB of history.
func BenchmarkDiscover(b *testing.B) {
	for name, history := range map[string]int{"small": 0, "5MB": 5 << 20} {
		b.Run(name, func(b *testing.B) {
			home := b.TempDir()
			o := clientconfig.Options{Home: home, Dir: home + "/project"}
			text := fmt.Sprintf(`{"history": [%s{}], "projects": {"/x": {"history": ["%s"]}}, "mcpServers": {"a": {"command": "x"}}}`,
				strings.Repeat(`{"display": "some text \" here", "n": 1},`, history/80), strings.Repeat("x", history/2))
			mcptest.WriteFile(b, home+"/.claude.json", text)
			mcptest.WriteFile(b, home+"/.cursor/mcp.json", `{"mcpServers": {"b": {"command": "y"}}}`)
			mcptest.WriteFile(b, home+"/.codex/config.toml", "[mcp_servers.c]\ncommand = 'z'\n")
			mcptest.WriteFile(b, home+"/.config/goose/config.yaml", "extensions: {d: {type: stdio, cmd: z, args: [a]}}\n")
			for b.Loop() {
				if c := clientconfig.Discover(o); len(c.Servers) != 4 {
					b.Fatal(c)
				}
			}
		})
	}
}
