package rule

import (
	"strings"
	"testing"
)

func TestErrorsNameTheKeyAsTheFileHasIt(t *testing.T) {
	top := At(nil, map[string]any{"servers": map[string]any{"a.b": map[string]any{"deny": int64(1)}}, "x": true})
	fields, err := top.Fields()
	if err != nil || len(fields) != 2 {
		t.Fatal(fields, err)
	}
	want := []string{`x: there is no such key; the keys are a, b`, `[servers] "a.b": it must be true or false, not a table`, `[servers."a.b"] deny: it must be a string or a list of strings, not a number`}
	servers, _ := fields[0].Fields()
	_, noBool := servers[0].Bool()
	keys, _ := servers[0].Fields()
	_, noGlobs := keys[0].Globs()
	for i, err := range []error{fields[1].UnknownKey("a", "b"), noBool, noGlobs} {
		if err == nil || err.Error() != want[i] {
			t.Errorf("%v\nwant %s", err, want[i])
		}
	}
	if list, isList := At(nil, []any{"a", int64(1)}).List(); !isList || len(list) != 2 {
		t.Error(list)
	}
}

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
		g, err := At(nil, tt.pattern).Glob()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q = %v", tt.pattern, tt.name, got)
		}
	}
}
