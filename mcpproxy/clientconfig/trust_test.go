package clientconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// trusting is a site whose trust is kept as in the program.
func trusting(t *testing.T, files map[string]string) (clientconfig.Options, clientconfig.Trust) {
	t.Helper()
	o := mcptest.Site(t, files)
	trust := clientconfig.NewTrust(filepath.Join(filepath.Dir(o.Home), "state"))
	o.Trusted = trust.State
	return o, trust
}

func TestTrustEndsWithAnyChange(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/.cursor/mcp.json": `{"mcpServers":{"a":{"command":"a","envFile":"${workspaceFolder}/.env"}}}`,
		"project/.env":             "A=1\n",
	})
	file := filepath.Join(o.Dir, ".cursor/mcp.json")
	if err := trust.Set(file, clientconfig.Discover(o).Projects[0].Sum, true); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".cursor/mcp.json": `{"mcpServers":{"a":{"command":"a","envFile":"${workspaceFolder}/.env"}}} `,
		".env":             "A=1\nLD_PRELOAD=evil.so\n",
	} {
		path := filepath.Join(o.Dir, name)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if names(clientconfig.Discover(o)) != "a=a" {
			t.Fatalf("it is not trusted: %v", clientconfig.Discover(o).Problems)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := clientconfig.Discover(o)
		if len(c.Servers) != 0 || len(c.Projects) != 1 || !c.Projects[0].Changed || !strings.Contains(c.Problems[0].Reason, "has changed since") {
			t.Errorf("after a change of %s: servers = %s, problems = %v", name, names(c), c.Problems)
		}
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedFileIsNotAskedForAgain(t *testing.T) {
	o, trust := trusting(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"a":{"command":"a"}}}`})
	p := clientconfig.Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, false); err != nil || p.Declined {
		t.Fatal(err, p)
	}
	if c := clientconfig.Discover(o); !c.Projects[0].Declined || len(c.Servers) != 0 {
		t.Errorf("found %+v", c)
	}
	if trust.State(p.Path, "another") != clientconfig.Untrusted {
		t.Error("a file that changed since is not asked for")
	}
}

func TestTrustOfTheSameServerInAFileOfTheUserIsNotNeeded(t *testing.T) {
	o, _ := trusting(t, map[string]string{
		"project/.mcp.json": `{"mcpServers":{"a":{"command":"npx","args":["-y","x"]},"b":{"command":"b"}}}`,
		"home/.claude.json": `{"mcpServers":{"a":{"command":"npx","args":["x"]},"b":{"command":"b","env":{"A":"1"}}}}`,
	})
	c := clientconfig.Discover(o)
	if names(c) != "a=npx b=b" || len(c.Problems) != 1 || c.Problems[0].Server != "b" || !slices.Equal(c.Servers[0].Also, []string{filepath.Join(o.Dir, ".mcp.json")}) {
		t.Errorf("servers = %+v, problems = %v", c.Servers, c.Problems)
	}
}

func TestHomeAsProjectNeedsNoTrust(t *testing.T) {
	o, _ := trusting(t, map[string]string{
		"home/.mcp.json":        `{"mcpServers":{"a":{"command":"a"}}}`,
		"home/.cursor/mcp.json": `{"mcpServers":{"b":{"command":"b"}}}`,
	})
	o.Dir = o.Home
	if c := clientconfig.Discover(o); names(c) != "a=a b=b" || len(c.Problems) != 0 {
		t.Errorf("servers = %s, problems = %v", names(c), c.Problems)
	}
}

func TestNoTrustWithoutARecordThatCanBeRead(t *testing.T) {
	trust := clientconfig.NewTrust(t.TempDir())
	if err := trust.Set("/f", "1", true); err != nil || trust.State("/f", "1") != clientconfig.Trusted {
		t.Fatal(err)
	}
	info, err := os.Stat(trust.File())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record has mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(trust.File(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if trust.State("/f", "1") != clientconfig.Untrusted {
		t.Error("a broken record trusts")
	}
	mcptest.WantError(t, trust.Set("/f", "1", true), trust.File(), "correct or remove it")
}

func TestRecordKeepsAllOfManyChangesAtOnce(t *testing.T) {
	values := clientconfig.NewValues(t.TempDir())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := values.Set("/f", fmt.Sprint(i), "v"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(values.Of("/f")); n != 20 {
		t.Errorf("%d of 20 values are there", n)
	}
	if was, err := values.Forget("/f", "3"); !was || err != nil || len(values.Of("/f")) != 19 {
		t.Errorf("forgetting one: %v, %v", was, err)
	}
}

func TestProjectOf(t *testing.T) {
	for file, want := range map[string]string{
		"/src/x/.mcp.json":                   "/src/x",
		"/src/x/.cursor/mcp.json":            "/src/x",
		"/src/x/.continue/mcpServers/a.yaml": "/src/x",
		"/.mcp.json":                         "/",
		"/src/x/servers.json":                "",
		"/src/x/mcp.json":                    "",
	} {
		if got := clientconfig.ProjectOf(file); got != want {
			t.Errorf("ProjectOf(%s) = %q, want %q", file, got, want)
		}
	}
}
