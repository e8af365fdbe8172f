package mcpproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestStatusAndLookupNameWhatWasLeftOut(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"my-files":{"command":"c","description":"d"},"web":{"type":"ws","url":"https://x"}}}`})
	p := New(clientconfig.Discover(o), Options{})
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
	mcptest.WantError(t, err, `did you mean "my-files"?`)
	_, err = p.Lookup("")
	mcptest.WantError(t, err, "no server")
}

func TestUnknownServerNamesTheFilesThatCouldNotBeRead(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"project/.mcp.json": "{\n\"mcpServers\": "})
	p := New(clientconfig.Discover(o), Options{})
	defer p.Close()
	_, err := p.Lookup("syntax")
	mcptest.WantError(t, err, `no server "syntax"`, "not used: ", ".mcp.json: ", "line 2")
}

// TestFailuresAreRememberedUntilTheServerWorks: servers list and describe_servers
// start nothing, and show why a server failed in an earlier process.
func TestFailuresAreRememberedUntilTheServerWorks(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "server")
	broken := fake(t, "FAKE_DIE_AT_START", "1")
	broken.Name, broken.Alias = "broken", "broken"
	works := fake(t)
	late := config.Server{Name: "late", Alias: "late", Transport: config.Stdio, Command: missing, Env: works.Env}
	statuses := func() map[string]string {
		all := map[string]string{}
		for _, st := range proxyFor(t, Options{CatalogDir: dir}, broken, late, works).Servers() {
			all[st.Name] = st.Status + " " + st.Error
		}
		return all
	}
	list := func() {
		p := proxyFor(t, Options{CatalogDir: dir}, broken, late, works)
		for _, name := range []string{"broken", "late", works.Name} {
			_, _ = p.Refresh(t.Context(), name)
		}
	}
	list()
	got := statuses()
	if !strings.Contains(got["broken"], "failed ") || !strings.Contains(got["broken"], "exit status 7") || strings.Contains(got["broken"], "API_KEY") {
		t.Errorf("broken: %s", got["broken"])
	}
	if !strings.Contains(got["late"], "failed ") || !strings.Contains(got["late"], missing) || got[works.Name] != "idle " {
		t.Errorf("%v", got)
	}
	if err := os.Symlink(works.Command, missing); err != nil {
		t.Fatal(err)
	}
	list()
	if got := statuses(); got["late"] != "idle " || !strings.HasPrefix(got["broken"], "failed ") {
		t.Errorf("later: %v", got)
	}
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	list() // its tools are known by now
	if got := statuses(); !strings.Contains(got["late"], "failed ") || !strings.Contains(got["late"], missing) {
		t.Errorf("with its tools known: %v", got)
	}
}
