package clientconfig_test

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// startDirs gives where each server starts, by name.
func startDirs(o clientconfig.Options) map[string]string {
	dirs := map[string]string{}
	for _, s := range clientconfig.Discover(o).Servers {
		dirs[s.Name] = s.StartDir()
	}
	return dirs
}

// TestServersOfTheUserStartAtHome: in the project, python -m NAME and npx NAME
// would run its files.
func TestServersOfTheUserStartAtHome(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/named.json": `{"mcpServers":{"named":{"command":"1"}}}`,
		"project/.mcp.json":  `{"mcpServers":{"project":{"command":"./2"}}}`,
		"home/MCPs/own.json": `{"command":"3"}`,
		"home/.claude.json":  `{"mcpServers":{"claude":{"command":"4"}},"projects":{"PROJECT":{"mcpServers":{"local":{"command":"5"}}}}}`,
		"home/.cursor/mcp.json": `{"mcpServers":{"cursor":{"command":"6"},"variable":{"command":"./7","cwd":"${workspaceFolder}"},
			"relative":{"command":"8","args":["."],"cwd":"sub"},"absolute":{"command":"9","cwd":"/opt"},"tilde":{"command":"10","cwd":"~/x"},"web":{"url":"https://x/"}}}`,
		"home/.config/toolcell/servers/claude.json": `{"mcpServers":{"moved":{"command":"11"}}}`,
	})
	o.Extra = "named.json"
	want := map[string]string{
		"named": o.Home, "own": o.Home, "claude": o.Home, "local": o.Home, "cursor": o.Home, "moved": o.Home, "web": "",
		"variable": o.Dir, "relative": o.Dir + "/sub", "absolute": "/opt", "tilde": o.Home + "/x",
	}
	compare := func(when string) {
		t.Helper()
		got := startDirs(o)
		for name, dir := range want {
			if got[name] != dir {
				t.Errorf("%s: %s starts in %q, want %q", when, name, got[name], dir)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: servers are %v", when, got)
		}
	}
	compare("no trust")
	p := clientconfig.Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, true); err != nil {
		t.Fatal(err)
	}
	want["project"], want["local"] = o.Dir, o.Dir
	compare("trust")
	mcptest.WriteFile(t, p.Path, `{"mcpServers":{"project":{"command":"./3"}}}`)
	delete(want, "project")
	want["local"] = o.Home
	compare("a change of the trusted file")
}

// TestRelativePathsOfTheUserAreRefused, where they would lead elsewhere than before.
func TestRelativePathsOfTheUserAreRefused(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/.mcp.json":     `{"mcpServers":{"p":{"command":"./p","args":["."]}}}`,
		"home/.claude.json":     `{"projects":{"PROJECT":{"mcpServers":{"local":{"command":"node","args":["./build/index.js"]}}}}}`,
		"home/.cursor/mcp.json": `{"mcpServers":{"a":{"command":"./server.sh"},"off":{"command":"./x","disabled":true},"value":{"command":"./x","args":["${env:NONE}"]}}}`,
	})
	refused := func() (all []string) {
		for _, p := range clientconfig.Discover(o).Problems {
			if p.Status == config.StatusSkipped && !p.Skipped && strings.Contains(p.Reason, `set "cwd" in the entry`) {
				all = append(all, p.Server)
			}
		}
		return all
	}
	if got := refused(); !slices.Equal(got, []string{"local", "a"}) {
		t.Errorf("refused are %q", got)
	}
	p := clientconfig.Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, true); err != nil {
		t.Fatal(err)
	}
	if got := refused(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with trust, refused are %q", got)
	}
	link := o.Home + "-link"
	if err := os.Symlink(o.Home, link); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{o.Home, link} { // the project is the home: nothing leads elsewhere
		atHome := o
		atHome.Dir, atHome.Home = o.Home, home
		if got := startDirs(atHome); got["a"] != o.Home {
			t.Errorf("at home the servers start in %v", got)
		}
	}
}

// TestServersStartSomewhereWithoutAHome: HOME may be unset, or lead nowhere.
func TestServersStartSomewhereWithoutAHome(t *testing.T) {
	want := "/"
	if u, err := user.Current(); err == nil {
		if info, err := os.Stat(u.HomeDir); err == nil && info.IsDir() {
			want = u.HomeDir
		}
	}
	o := mcptest.Site(t, map[string]string{"project/named.json": `{"mcpServers":{"a":{"command":"a"}}}`})
	o.Extra = "named.json"
	for _, home := range []string{"", filepath.Join(o.Home, "missing"), "."} {
		o.Home = home
		if got := startDirs(o); got["a"] != want {
			t.Errorf("with the home %q it starts in %q, want %q", home, got["a"], want)
		}
	}
}

// TestDirectoriesMakeServersDiffer: one command in two directories is two servers,
// but not where one has the other's name.
func TestDirectoriesMakeServersDiffer(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/.mcp.json":       `{"mcpServers":{"a":{"command":"x"}}}`,
		"home/.cursor/mcp.json":   `{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}`,
		"home/.lmstudio/mcp.json": `{"mcpServers":{"c":{"command":"x","cwd":"~/"}}}`,
	})
	c := clientconfig.Discover(o)
	if names(c) != "a=x b=x" || len(c.Problems) != 1 || c.Problems[0].Status != config.StatusSame ||
		!slices.Equal(c.Servers[0].Also, []string{filepath.Join(o.Home, ".cursor/mcp.json")}) {
		t.Errorf("servers = %+v, problems = %v", c.Servers, c.Problems)
	}
}
