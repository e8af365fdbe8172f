package mcpproxy

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/discovery"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestStatusAndLookupNameWhatWasLeftOut(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"my-files":{"command":"c","description":"d"},"web":{"type":"ws","url":"https://x"}}}`})
	p := New(discovery.Discover(o), Options{})
	defer p.Close()
	got := p.Servers()
	if len(got) != 2 || got[0].Status != "idle" || got[0].Alias != "my_files" || got[1].Name != "web" || got[1].Status != "skipped" ||
		!strings.Contains(got[1].Error, "not supported") || len(p.Problems()) != 1 {
		t.Errorf("servers = %+v", got)
	}
	for _, key := range []string{"my-files", "my_files"} {
		if s, err := p.Lookup(key); err != nil || s.Name != "my-files" {
			t.Errorf("Lookup(%q) = %+v, %v", key, s, err)
		}
	}
	_, err := p.Lookup("web")
	mcptest.WantError(t, err, `"web" cannot be used`, "not supported")
	_, err = p.Lookup("files")
	mcptest.WantError(t, err, `nearest is "my-files"`)
	_, err = p.Lookup("")
	mcptest.WantError(t, err, "no server")
}
