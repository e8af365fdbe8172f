package pyname

import "testing"

func TestIdentifier(t *testing.T) {
	for name, want := range map[string]string{
		"":                "",
		"list_issues":     "list_issues",
		"Google-Drive":    "google_drive",
		"get.Document":    "get_document",
		"3d-printer":      "_3d_printer",
		"größe":           "gr__e",
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
		if got := Alias(tt.name, "tool", taken); got != tt.want {
			t.Errorf("Alias(%q) = %q, want %q", tt.name, got, tt.want)
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
