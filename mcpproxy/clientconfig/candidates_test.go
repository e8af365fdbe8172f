package clientconfig_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// with is o with more variables.
func with(o clientconfig.Options, env map[string]string) clientconfig.Options {
	old := o.Getenv
	o.Getenv = func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return old(name)
	}
	return o
}

func TestFileInAVariableIsRead(t *testing.T) {
	o := mcptest.Site(t, nil)
	for text, want := range map[string]string{
		`{"mcp":{"x":{"type":"local","command":["c","{env:TOKEN}"]}}}`: "",
		`{"mcp":{"x":{"type":"local"}}}`:                               `$OPENCODE_CONFIG_CONTENT: server "x": has no "command"`,
		`{"mcp"`:                                                       `$OPENCODE_CONFIG_CONTENT: is not JSON`,
	} {
		c := clientconfig.Discover(with(o, map[string]string{"OPENCODE_CONFIG_CONTENT": text}))
		if want == "" {
			if len(c.Servers) != 1 || !slices.Equal(c.Servers[0].Args, []string{"t0k3n"}) ||
				c.Servers[0].Source != "$OPENCODE_CONFIG_CONTENT" {
				t.Errorf("%s: servers = %+v, problems = %v", text, c.Servers, c.Problems)
			}
		} else if len(c.Problems) != 1 || !strings.HasPrefix(c.Problems[0].String(), want) {
			t.Errorf("%s: problems = %v, want %q", text, c.Problems, want)
		}
	}
}

// TestFileOfTwoPlacesIsReadOnce: a variable may name the place that a client has anyway.
func TestFileOfTwoPlacesIsReadOnce(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/.config/opencode/opencode.json": `{"mcp":{"x":{"command":5}}}`})
	o = with(o, map[string]string{"OPENCODE_CONFIG": "~/.config/opencode/opencode.json"})
	if c := clientconfig.Discover(o); len(c.Problems) != 1 {
		t.Errorf("problems = %v", c.Problems)
	}
}

// TestProjectHasNoFilesOfAUserWithoutAHome, and none for variables with relative paths: nobody
// asks before those start commands.
func TestProjectHasNoFilesOfAUserWithoutAHome(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/~/.claude.json":         `{"mcpServers":{"a":{"command":"evil"}}}`,
		"project/~/.config/mcp/mcp.json": `{"mcpServers":{"b":{"command":"evil"}}}`,
		"project/.claude.json":           `{"mcpServers":{"c":{"command":"evil"}}}`,
		"project/.config/mcp/mcp.json":   `{"mcpServers":{"d":{"command":"evil"}}}`,
		"project/MCPs/e.json":            `{"command":"evil"}`,
	})
	t.Chdir(o.Dir)
	for _, home := range []string{"", ".", "~", o.Home} {
		o.Home = home
		variables := map[string]string{"XDG_CONFIG_HOME": ".config", "CLAUDE_CONFIG_DIR": "."}
		if c := clientconfig.Discover(with(o, variables)); len(c.Servers) != 0 {
			t.Errorf("at home in %q: servers = %s", home, names(c))
		}
	}
}

// TestNamedFileOfAFolderIsReadOnce: what is wrong with it is said once.
func TestNamedFileOfAFolderIsReadOnce(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/x.json": `{"args":[]}`, "home/MCPs/y.json": `{"command":"y"}`})
	o.Extra = "~/MCPs/x.json"
	if c := clientconfig.Discover(o); len(c.Problems) != 1 || names(c) != "y=y" {
		t.Errorf("servers = %s, problems = %v", names(c), c.Problems)
	}
}

func TestFolderThatCannotBeReadIsReported(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"home/MCPs": "a file", "home/.claude.json": `{"mcpServers":{"a":{"command":"good"}}}`,
	})
	c := clientconfig.Discover(o)
	if names(c) != "a=good" || len(c.Problems) != 1 || !strings.HasPrefix(c.Problems[0].Reason, "reading the folder: ") ||
		!strings.Contains(c.Problems[0].Reason, "not a directory") || c.Problems[0].Source != filepath.Join(o.Home, "MCPs") {
		t.Errorf("servers = %s, problems = %v", names(c), c.Problems)
	}
}

func TestProjectsOfClaudesFileAreObjects(t *testing.T) {
	for projects, want := range map[string]string{
		`[]`: `"projects" is not an object`, `{"PROJECT":5}`: `is not an object`,
		`{"PROJECT":{"mcpServers":5}}`: `"mcpServers" is not an object`,
	} {
		o := mcptest.Site(t, map[string]string{"home/.claude.json": `{"mcpServers":{"a":{"command":"x"}},"projects":` + projects + `}`})
		c := clientconfig.Discover(o)
		if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason, want) ||
			c.Problems[0].Source != filepath.Join(o.Home, ".claude.json") {
			t.Errorf("%s: servers = %s, problems = %v, want %q", projects, names(c), c.Problems, want)
		}
	}
}

// TestFilesThatEntriesNameAreTold, so that a change of theirs is one of the configuration:
// also one that is not there yet.
func TestFilesThatEntriesNameAreTold(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/.cursor/mcp.json": `{"mcpServers":{"a":{"command":"x","envFile":"b.env"},"b":{"command":"x","envFile":"a.env"}}}`,
		"home/.cursor/mcp.json":    `{"mcpServers":{"c":{"command":"x","envFile":"c.env"}}}`,
		"project/b.env":            "A=1",
	})
	want := []string{filepath.Join(o.Dir, "a.env"), filepath.Join(o.Dir, "b.env"), filepath.Join(o.Home, ".cursor/c.env")}
	if c := clientconfig.Discover(o); !slices.Equal(c.Reads, want) {
		t.Errorf("it reads %q, want %q", c.Reads, want)
	}
}

func TestOlderDialectIsThatOfTheClientsOtherFile(t *testing.T) {
	d := clientconfig.OlderDialectOf("vscode")
	if d == nil || d == clientconfig.DialectOf("vscode") || !slices.Contains(d.Keys, "mcp/servers") {
		t.Errorf("of VS Code: %+v", d)
	}
	if d := clientconfig.OlderDialectOf("cursor"); d != nil {
		t.Errorf("of Cursor: %+v", d)
	}
}
