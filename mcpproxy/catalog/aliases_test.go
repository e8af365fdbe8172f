package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

func listOf(t *testing.T, f toolFilter, names ...string) *List {
	t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`{"name":%q}`, name))
	}
	return newList(definitionsOf(t, all...), f)
}

// TestDocumentedNameCallsItsTool, in whatever order the server lists its tools.
func TestDocumentedNameCallsItsTool(t *testing.T) {
	for _, names := range [][]string{
		{"file.delete", "file_delete"},
		{"Read", "read"},
		{"a-b", "a_b", "a.b", "a_b_2", "A-B"},
		{"查询", "tool", "!", "日本語", "ünï"},
		{"list_tools", "list-tools", "list_tools_2"},
		{"class", "Class", "class_"},
		{"ﬁle", "file"},
		{"_x", "x", "__x__"},
		{"3d", "_3d", "٣"},
		{"ंa", "a", "_ंa"},
	} {
		want := map[string]string{}
		for range names {
			names = append(names[1:], names[0])
			l := listOf(t, toolFilter{}, names...)
			for _, tool := range l.All() {
				if got, ok := l.Find(tool.Alias); !ok || got.Name != tool.Name {
					t.Errorf("%q: %q, the name in code of %q, reaches %q", names, tool.Alias, tool.Name, got.Name)
				}
				if got, ok := l.Find(tool.Name); !ok || got.Name != tool.Name {
					t.Errorf("%q: %q reaches %q", names, tool.Name, got.Name)
				}
				if before, ok := want[tool.Name]; ok && before != tool.Alias {
					t.Errorf("%q: %q was called %q, and in another order %q", names, tool.Name, before, tool.Alias)
				}
				want[tool.Name] = tool.Alias
				if tool.Alias == "list_tools" || strings.HasPrefix(tool.Alias, "__") {
					t.Errorf("%q is called %q, which is Python's or toolcell's", tool.Name, tool.Alias)
				}
			}
		}
	}
}

func TestIdentifiersOfAnyScriptStay(t *testing.T) {
	for _, tool := range listOf(t, toolFilter{}, "日本語", "ünï", "get_größe", "читать", "नमस्ते").All() {
		if tool.Alias != tool.Name {
			t.Errorf("%q is called %q", tool.Name, tool.Alias)
		}
	}
}

// TestAliasesDoNotDependOnTheFilter: what the user hides gives no other tool its name.
func TestAliasesDoNotDependOnTheFilter(t *testing.T) {
	f := filterOf(config.Server{DenyTools: []string{"file_delete"}, Source: "x.json"})
	l := listOf(t, f, "file.delete", "file_delete", "stay")
	if tool, ok := l.Find("file.delete"); !ok || tool.Alias != "file_delete_2" {
		t.Errorf("file.delete is called %q", tool.Alias)
	}
	for _, key := range []string{"file_delete", "FILE-DELETE"} {
		if tool, ok := l.Resolve(key); ok {
			t.Errorf("%s reaches %q", key, tool.Name)
		}
	}
	if err := l.Missing("s", "file_delete"); !strings.Contains(err.Error(), `tool "file_delete" of server "s" is hidden: x.json excludes "file_delete"`) {
		t.Error(err)
	}
}

func TestToolsKnowTheirTwins(t *testing.T) {
	l := listOf(t, toolFilter{}, "Read", "read", "READ", "FILE.delete", "File_Delete", "other", "Lone")
	for name, want := range map[string]string{
		"Read": "read READ", "read": "Read READ", "READ": "Read read", "File_Delete": "FILE.delete", "FILE.delete": "File_Delete", "other": "", "Lone": "",
	} {
		tool, _ := l.Find(name)
		var got []string
		for twin := range strings.FieldsSeq(want) {
			other, _ := l.Find(twin)
			for _, key := range []string{other.Name, other.Alias} {
				if !slices.Contains(tool.Twins(), key) {
					t.Errorf("%s does not know %s: %q", name, key, tool.Twins())
				}
				got = append(got, key)
			}
		}
		if want != "" {
			got = append(got, tool.Name, tool.Alias)
		}
		if len(got) != len(tool.Twins()) {
			t.Errorf("%s has the twins %q", name, tool.Twins())
		}
	}
}

func TestResolveTakesANameThatCanMeanOneToolOnly(t *testing.T) {
	l := listOf(t, toolFilter{}, "API-get-self", "Read", "read", "a-b", "A_B", "日本語", "Get Page")
	for key, want := range map[string]string{
		"API-get-self": "API-get-self", "api_get_self": "API-get-self", "API_get_self": "API-get-self", "Api-Get_Self": "API-get-self",
		"Read": "Read", "read": "read", "READ": "", "a_b": "A_B", "A_B": "A_B", "a-b": "a-b", "A-B": "", "apigetself": "", "": "", "Get-Page": "Get Page",
	} {
		if got, ok := l.Resolve(key); got.Name != want || ok != (want != "") {
			t.Errorf("%q reaches %q, %v; want %q", key, got.Name, ok, want)
		}
	}
	if got := l.Missing("s", "API_get_sell").Error(); !strings.Contains(got, `the nearest are "api_get_self"`) {
		t.Errorf("no name that code can call: %s", got)
	}
	var aliases []string
	for _, tool := range l.All() {
		aliases = append(aliases, tool.Alias)
	}
	if want := []string{"api_get_self", "read_2", "read", "a_b_2", "a_b", "日本語", "get_page"}; !slices.Equal(aliases, want) {
		t.Errorf("aliases = %q, want %q", aliases, want)
	}
}
