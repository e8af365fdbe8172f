package clientconfig_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestValuesAreKeptUntilTheyAreForgotten(t *testing.T) {
	values := clientconfig.NewValues(t.TempDir())
	want := func(file string, want map[string]string) {
		t.Helper()
		if got := values.Of(file); !maps.Equal(got, want) {
			t.Errorf("of %s there are %q, want %q", file, got, want)
		}
	}
	forget := func(file, id string, want bool) {
		t.Helper()
		if was, err := values.Forget(file, id); was != want || err != nil {
			t.Errorf("forgetting %s of %s: %v, %v", id, file, was, err)
		}
	}
	for _, v := range [][3]string{{"/f", "a", "old"}, {"/f", "b", "2"}, {"/g", "a", "3"}, {"/f", "a", "1"}} {
		if err := values.Set(v[0], v[1], v[2]); err != nil {
			t.Fatal(err)
		}
	}
	want("/f", map[string]string{"a": "1", "b": "2"})
	forget("/f", "a", true)
	forget("/f", "a", false)
	forget("/none", "a", false)
	want("/f", map[string]string{"b": "2"})
	want("/g", map[string]string{"a": "3"})
	forget("/f", "b", true)
	data, err := os.ReadFile(values.File())
	if err != nil || strings.Contains(string(data), `"/f"`) || !strings.Contains(string(data), `"/g"`) {
		t.Errorf("what is kept names a file without values: %s, %v", data, err)
	}
}

func TestValuesThatCannotBeReadAreNotLost(t *testing.T) {
	values := clientconfig.NewValues(t.TempDir())
	mcptest.WriteFile(t, values.File(), `{"/f":{"a":"1"},`)
	if got := values.Of("/f"); got != nil {
		t.Errorf("there are %q", got)
	}
	mcptest.WantError(t, values.Set("/f", "b", "2"), values.File(), "correct or remove it")
	_, err := values.Forget("/f", "a")
	mcptest.WantError(t, err, values.File(), "correct or remove it")
	if data, err := os.ReadFile(values.File()); string(data) != `{"/f":{"a":"1"},` {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// TestVariablesOfInputsHaveTwoNames: the old one still counts, and two different values are an error
// that shows neither.
func TestVariablesOfInputsHaveTwoNames(t *testing.T) {
	const file = `{"servers": {"x": {"command": "c", "args": ["${input:my key}"]}}}`
	for want, variables := range map[string]map[string]string{
		"new":   {"TOOLCELL_INPUT_MY_KEY": "new"},
		"old":   {"MCP_BRIDGE_INPUT_MY_KEY": "old"},
		"same":  {"TOOLCELL_INPUT_MY_KEY": "same", "MCP_BRIDGE_INPUT_MY_KEY": "same"},
		"empty": {"TOOLCELL_INPUT_MY_KEY": "", "MCP_BRIDGE_INPUT_MY_KEY": "empty"},
		"":      {"TOOLCELL_INPUT_MY_KEY": "s3cret-one", "MCP_BRIDGE_INPUT_MY_KEY": "s3cret-two"},
	} {
		o := mcptest.Site(t, map[string]string{"project/.vscode/mcp.json": file})
		o.Getenv = func(name string) string { return variables[name] }
		c := clientconfig.Discover(o)
		if want != "" {
			if len(c.Servers) != 1 || c.Servers[0].Args[0] != want {
				t.Errorf("%v: %+v, %+v", variables, c.Servers, c.Problems)
			}
			continue
		}
		const reason = "the variables TOOLCELL_INPUT_MY_KEY and MCP_BRIDGE_INPUT_MY_KEY, its old name, have different values: unset one of them"
		if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason, reason) || strings.Contains(c.Problems[0].Reason, "s3cret") {
			t.Errorf("two values: %+v", c.Problems)
		}
	}
}
