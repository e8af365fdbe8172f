package clientconfig_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestWhichEntryOfANameCounts(t *testing.T) {
	const (
		project, claude, cursor, lmstudio = "project/.mcp.json", "home/.claude.json", "home/.cursor/mcp.json", "home/.lmstudio/mcp.json"

		one, two = `{"mcpServers":{"x":{"command":"1"}}}`, `{"mcpServers":{"x":{"command":"2"}}}`
		off      = `{"mcpServers":{"x":{"command":"1","disabled":true}}}`
	)
	for _, tt := range []struct {
		what    string
		files   map[string]string
		servers string
		left    []string
	}{
		{
			"the first client's",
			map[string]string{cursor: one, lmstudio: two},
			"x=1",
			[]string{"skipped: shadowed by another server of this name in HOME/.cursor/mcp.json"},
		},
		{
			"none, as the project switches it off",
			map[string]string{project: off, cursor: two},
			"",
			[]string{"disabled: disabled", "skipped: switched off by PROJECT/.mcp.json"},
		},
		{
			"none, as ~/MCPs switches it off",
			map[string]string{"home/MCPs/a.json": off, cursor: two},
			"",
			[]string{"disabled: disabled", "skipped: switched off by HOME/MCPs/a.json"},
		},
		{"none, as the same client switches it off for this project", map[string]string{
			claude: `{"mcpServers":{"x":{"command":"1"}},"projects":{"PROJECT":` + off + `}}`,
		}, "", []string{"disabled: disabled", "skipped: switched off by HOME/.claude.json"}},
		{"that of a client that does not switch it off", map[string]string{cursor: off, lmstudio: two}, "x=2", []string{"disabled: disabled"}},
		{"none, off in two clients", map[string]string{cursor: off, lmstudio: off}, "", []string{"disabled: disabled"}},
		{
			"none, off in one of a client's two files and in another client",
			map[string]string{
				cursor: off, "home/.config/Code/User/mcp.json": `{"servers":{"x":{"command":"1","disabled":true}}}`,
				"home/.config/Code/User/settings.json": `{"mcp":{"servers":{"x":{"command":"2"}}}}`,
			},
			"",
			[]string{"disabled: disabled", "skipped: switched off by HOME/.cursor/mcp.json"},
		},
		{"none, off in one and broken in another", map[string]string{cursor: off, lmstudio: `{"mcpServers":{"x":{}}}`}, "", []string{"disabled: disabled", `skipped: has no "command" and no "url"`}},
	} {
		o := mcptest.Site(t, tt.files)
		c := clientconfig.Discover(o)
		var left []string
		for _, p := range c.Problems {
			left = append(left, p.Status+": "+strings.NewReplacer(o.Home, "HOME", o.Dir, "PROJECT").Replace(p.Reason))
		}
		if names(c) != tt.servers || !slices.Equal(left, tt.left) {
			t.Errorf("%s: servers = %s, left out: %q", tt.what, names(c), left)
		}
	}
}

func TestSameServerOfTwoClientsHasBothFiles(t *testing.T) {
	for name, problems := range map[string]int{"x": 0, "y": 1} { // another name is no other server
		o := mcptest.Site(t, map[string]string{
			"home/.cursor/mcp.json":   `{"mcpServers":{"x":{"command":"1"}}}`,
			"home/.lmstudio/mcp.json": `{"mcpServers":{"` + name + `":{"command":"1"}}}`,
		})
		c := clientconfig.Discover(o)
		also := []string{filepath.Join(o.Home, ".lmstudio/mcp.json")}
		if names(c) != "x=1" || len(c.Problems) != problems || !slices.Equal(c.Servers[0].Also, also) {
			t.Errorf("as %s: servers = %+v, problems = %v", name, c.Servers, c.Problems)
		}
	}
}

func TestServersBeyondTheMostAreReported(t *testing.T) {
	var all []string
	for i := range clientconfig.MaxServers + 1 {
		all = append(all, fmt.Sprintf(`"s%d":{"command":"c%d"}`, i, i))
	}
	o := mcptest.Site(t, map[string]string{"home/MCPs/all.json": `{"mcpServers":{` + strings.Join(all, ",") + `}}`})
	c := clientconfig.Discover(o)
	want := config.Problem{
		Source: filepath.Join(o.Home, "MCPs/all.json"), Server: fmt.Sprintf("s%d", clientconfig.MaxServers), Status: config.StatusSkipped,
		Reason: fmt.Sprintf("left out: there are more than %d servers", clientconfig.MaxServers),
	}
	if len(c.Servers) != clientconfig.MaxServers || !slices.Equal(c.Problems, []config.Problem{want}) {
		t.Errorf("%d servers, problems %.300v", len(c.Servers), c.Problems)
	}
}

func TestIdentityOfServersThatAreWrittenApart(t *testing.T) {
	home := t.TempDir()
	o := clientconfig.Options{Home: home, Dir: t.TempDir()}
	header := func(name, value string) config.Server {
		return config.Server{URL: "https://x", Headers: map[string]string{name: value}}
	}
	for _, tt := range []struct {
		what string
		a, b config.Server
		same bool
	}{
		{"one that was not discovered starts at home", config.Server{Command: "x"}, config.Server{Command: "x", DefaultDir: home}, true},
		{"another directory", config.Server{Command: "x"}, config.Server{Command: "x", DefaultDir: o.Dir}, false},
		{"case of a header's name", header("X-Key", "v"), header("x-key", "v"), true},
		{"another value of a header", header("X-Key", "v"), header("X-Key", "w"), false},
		{"another header", header("X-Key", "v"), header("X-Other", "v"), false},
	} {
		if same := o.Identity(tt.a) == o.Identity(tt.b); same != tt.same {
			t.Errorf("%s: the same server: %v, want %v", tt.what, same, tt.same)
		}
	}
}
