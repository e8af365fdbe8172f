package match

import (
	"strings"
	"testing"
)

func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"get_issue", "get_issue", true},
		{"get_issue", "get_issues", false},
		{"get_*", "get_issue", true},
		{"get_*", "get_", true},
		{"*_issue", "get_issue", true},
		{"*issue*", "get_issue", true},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a/*", "a/b/c", true},
		{"?et", "get", true},
		{"?", "é", true},
		{"??", "é", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXbYbZ", false},
		{"[a]", "a", false},
		{"Get", "get", false},
		{strings.Repeat("a*", 40) + "b", strings.Repeat("a", 400), false}, // no exponential time
	} {
		if got := Glob([]rune(tt.pattern), []rune(tt.name)); got != tt.want {
			t.Errorf("MatchGlob(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}
