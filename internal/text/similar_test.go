package text

import (
	"slices"
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
		if got := Glob(tt.pattern, tt.name); got != tt.want {
			t.Errorf("MatchGlob(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestNearestNamesComeFirst(t *testing.T) {
	names := []string{"tissue", "list_repos", "create_issue", "Issues", "x"}
	for want, nearest := range map[string][]string{
		"issue":     {"tissue", "Issues"},
		"ISSUES":    {"Issues", "tissue"},
		"list_repo": {"list_repos", "tissue"},
	} {
		if got := Nearest(want, names, 2); !slices.Equal(got, nearest) {
			t.Errorf("%s: %q, want %q", want, got, nearest)
		}
	}
	many := append(slices.Repeat([]string{"yyyyyyyy"}, maxNames/8), "issue")
	if got := Nearest("issue", many, 1); !slices.Equal(got, many[:1]) {
		t.Errorf("of very many: %.20q", got)
	}
}

func TestMeant(t *testing.T) {
	for _, tt := range []struct {
		want  string
		names []string
		meant string
	}{
		{"taks", []string{"a", "tasks"}, "tasks"},
		{"github", []string{"tasks"}, ""},
		{"files", []string{"a", "my-files"}, "my-files"},
		{"GitHub-Server", []string{"github"}, "github"},
		{"jira", []string{"filesystem", "github", "a", "j"}, ""},
		{"", []string{"tasks"}, ""},
		{"tasks", nil, ""},
	} {
		if got := Meant(tt.want, tt.names, 3); got != tt.meant {
			t.Errorf("%q of %q: %q, want %q", tt.want, tt.names, got, tt.meant)
		}
	}
}

func TestNamesThatAreLongerAreNotMisspelled(t *testing.T) {
	if got := Misspelled("IDLE_TIMEOUT", []string{"TIMEOUT"}); got != "" {
		t.Errorf("IDLE_TIMEOUT is taken for %s", got)
	}
	if got := Misspelled("TIMEUOT", []string{"IMAGE", "TIMEOUT"}); got != "TIMEOUT" {
		t.Errorf("TIMEUOT is taken for %q", got)
	}
}

func TestShortNamesAreNearestOnlyIfTheyAreLike(t *testing.T) {
	if got := Nearest("taks", []string{"a", "tasks"}, 1)[0]; got != "tasks" {
		t.Errorf("nearest is %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"exec", "exec", 0},
		{"exce", "exec", 1},
		{"lsit", "list", 1},
		{"lits", "list", 1},
		{"tsil", "list", 3},
		{"puull", "pull", 1},
		{"pll", "pull", 1},
		{"kitten", "sitting", 3},
	} {
		if ab, ba := EditDistance(tt.a, tt.b), EditDistance(tt.b, tt.a); ab != tt.want || ba != tt.want {
			t.Errorf("%q, %q: %d and %d, want %d", tt.a, tt.b, ab, ba, tt.want)
		}
	}
}
