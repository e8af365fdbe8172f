package clientconfig_test

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestSectionsOfServers(t *testing.T) {
	const gemini, opencode = "home/.gemini/settings.json", "home/.config/opencode/opencode.json"
	for _, tt := range []struct{ file, text, servers, problem string }{
		{"home/MCPs/a.json", `{"mcpServers":null}`, "", ""},
		{"home/MCPs/a.json", `{"mcpServers":5}`, "", `"mcpServers" is not an object of servers`},
		{opencode, `{"mcp":{"servers":{"type":"local","command":["x"]}}}`, "servers=x", ""},
		{opencode, `{"mcp":{"servers":{"type":"remote","url":"https://x"},"b":{"type":"local","command":["y"]}}}`, "servers= b=y", ""},
		{opencode, `{"mcp":{"servers":{"a":{"type":"local","command":["x"]}}}}`, "a=x", ""},
		{"home/.claude.json", `{"mcpServers":{"a":{"command":"x"}},"projects":{"/elsewhere":{}}}`, "a=x", ""},
		{"home/.claude.json", `{"mcpServers":{"a":{"command":"x"}},"projects":5}`, "", `"projects" is not an object`},
		{"home/.claude.json", `{"projects":{"PROJECT":5}}`, "", `project "PROJECT" is not an object`},
		{"home/.claude.json", `{"projects":{"PROJECT":{"mcpServers":5}}}`, "", `"mcpServers" is not an object of servers`},
		{gemini, `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"mcp":{"allowed":["b"]}}`, "b=y", "disabled"},
		{gemini, `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"mcp":{"allowed":[]}}`, "a=x b=y", ""},
		{gemini, `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"mcp":{"excluded":["b"]}}`, "a=x", "disabled"},
		{"home/.qwen/settings.json", `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"mcp":{"allowed":["b"]}}`, "b=y", "disabled"},
		{"home/.cursor/mcp.json", `{"mcpServers":{"a":{"command":"x"}},"mcp":{"excluded":["a"],"allowed":["b"]}}`, "a=x", ""}, // not Gemini's
	} {
		o := mcptest.Site(t, map[string]string{tt.file: tt.text})
		c := clientconfig.Discover(o)
		var problems []string
		for _, p := range c.Problems {
			problems = append(problems, strings.ReplaceAll(p.Reason, o.Dir, "PROJECT"))
		}
		if got := strings.Join(problems, ", "); names(c) != tt.servers || got != tt.problem {
			t.Errorf("%s of %s: servers = %s, problems = %s", tt.text, tt.file, names(c), got)
		}
	}
}

func TestWithoutAProjectNoEntryOfOneCounts(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"home/.claude.json": `{"mcpServers":{"a":{"command":"x"}},"projects":{".":{"mcpServers":{"b":{"command":"y"}}}}}`,
	})
	o.Dir = ""
	if c := clientconfig.Discover(o); names(c) != "a=x" || len(c.Problems) != 0 {
		t.Errorf("servers = %s, problems = %v", names(c), c.Problems)
	}
}
