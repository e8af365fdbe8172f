package rule

import (
	"strings"
	"testing"
)

func TestGlobMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "anything/at.all", true},
		{"get_*", "get_", true},
		{"get_*", "get", false},
		{"*_issue", "create_issue", true},
		{"*_issue", "create_issues", false},
		{"*a*b*c", "xxaxxbxxc", true},
		{"*a*b*c", "xxbxxaxxc", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"a?c", "aéc", true},
		{"Delete*", "deleteRepo", true},
		{"**", "x", true},
		{strings.Repeat("*a", 200), strings.Repeat("a", 400) + "b", false}, // and soon
		{"x", "", false},
	} {
		g, err := ParseGlob(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q = %v", tt.pattern, tt.name, got)
		}
	}
}
