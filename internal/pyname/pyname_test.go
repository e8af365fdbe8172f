package pyname

import (
	"maps"
	"slices"
	"testing"
)

func TestIdentifier(t *testing.T) {
	for name, want := range map[string]string{
		"":                "",
		"list_issues":     "list_issues",
		"Google-Drive":    "google_drive",
		"get.Document":    "get_document",
		"3d-printer":      "_3d_printer",
		"größe":           "größe",
		"日本語":             "日本語",
		"ÜNÏ code":        "ünï_code",
		"नमस्ते":          "नमस्ते",
		"ﬁle":             "file", // as Python reads it
		"ℌello":           "hello",
		"x²":              "x_",
		"😀a":              "_a",
		"a\u202eb":        "a_b",
		"\u0301a":         "_\u0301a",
		"٣d":              "_٣d",
		"tool\x00\n name": "tool___name",
	} {
		if got := Identifier(name); got != want {
			t.Errorf("Identifier(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestAliasesDoNotClash: the order of the calls decides who gets the plain name.
func TestAliasesDoNotClash(t *testing.T) {
	taken := map[string]bool{}
	for _, tt := range []struct{ name, want string }{
		{"get-issue", "get_issue"},
		{"get_issue", "get_issue_2"},
		{"get.issue", "get_issue_3"},
		{"get_issue_2", "get_issue_2_2"},
		{"import", "import_"},
		{"Import", "import__2"},
		{"match", "match"}, // a soft keyword is an identifier
		{"–", "tool"},
		{"___", "tool_2"},
		{"", "tool_3"},
	} {
		if got := Unique(Identifier(tt.name), "tool", taken); got != tt.want {
			t.Errorf("Unique(%q) = %q, want %q", tt.name, got, tt.want)
		}
		if !taken[tt.want] {
			t.Errorf("%q is not taken", tt.want)
		}
	}
}

// TestServerIsNotTheDictionaryOfAll: scripts see mcp_<alias>, and mcp_servers is
// something else.
func TestServerIsNotTheDictionaryOfAll(t *testing.T) {
	taken := map[string]bool{}
	for _, tt := range []struct{ name, want string }{
		{"servers", "servers_"},
		{"Servers", "servers__2"},
		{"server", "server"},
		{"!", "server_2"},
	} {
		if got := Server(tt.name, taken); got != tt.want {
			t.Errorf("Server(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestAliasesDoNotDependOnTheOrder: a name that is an identifier is its own alias, and
// no other's.
func TestAliasesDoNotDependOnTheOrder(t *testing.T) {
	for _, want := range []map[string]string{
		{"file.delete": "file_delete_2", "file_delete": "file_delete"},
		{"Read": "read_2", "read": "read"},
		{"READ": "read", "Read": "read_2"},
		{"a-b": "a_b_3", "a_b": "a_b", "a_b_2": "a_b_2", "a.b": "a_b_4"},
		{"查询": "查询", "tool": "tool", "!": "tool_2", "–": "tool_3"},
		{"list-tools": "list_tools_2", "list_tools": "list_tools_3", "list_tools_2_": "list_tools_2_"},
		{"class_": "class_", "Class": "class__2", "class": "class__3"},
		{"ﬁle": "file_2", "file": "file"},
		{"__debug__": "__debug___", "___": "tool"},
	} {
		scheme := Scheme{Fallback: "tool", Identifier: Identifier, Reserved: []string{"list_tools"}}
		names := slices.Sorted(maps.Keys(want))
		for range len(names) {
			names = append(names[1:], names[0])
			for i, got := range scheme.Aliases(names) {
				if _, other := want[got]; names[i] != got && other && !slices.Contains(scheme.Reserved, got) {
					t.Errorf("%q is called %q, which is another", names[i], got)
				}
				if got != want[names[i]] {
					t.Errorf("%q: %q is called %q, want %q", names, names[i], got, want[names[i]])
				}
			}
		}
	}
}

// TestAliasesOfNamesThatAllClashAreQuick: a server chooses the names of its tools.
func TestAliasesOfNamesThatAllClashAreQuick(t *testing.T) {
	names := make([]string, 20_000)
	for i := range names {
		for n := i; n > 0; n /= 4 {
			names[i] += string("!?.-"[n%4])
		}
		names[i] = "a" + names[i] + "b"[:i%2]
	}
	seen := map[string]bool{}
	for _, alias := range (Scheme{Fallback: "tool", Identifier: Identifier}).Aliases(names) {
		if seen[alias] || !IsIdentifier(alias) {
			t.Fatalf("%q is there twice, or no identifier", alias)
		}
		seen[alias] = true
	}
}
