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
