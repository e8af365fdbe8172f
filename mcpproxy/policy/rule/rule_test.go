package rule

import (
	"fmt"
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

func TestGlobsThatAreWrong(t *testing.T) {
	for pattern, want := range map[string]string{
		" ":                      "a glob is empty",
		"a[b]":                   "is not understood: only *",
		"a\tb":                   "is not understood",
		strings.Repeat("é", 300): "has more than 512 bytes",
	} {
		var g Glob
		if err := g.UnmarshalText([]byte(pattern)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", pattern, err, want)
		}
	}
}

// TestGlobsThatSayMore about a name weigh more.
func TestGlobsThatSayMore(t *testing.T) {
	for i, pattern := range []string{"**", "a*", "?a*b", "*abc", "a"} {
		g, err := ParseGlob(pattern)
		if err != nil || g.IsEverything() != (i == 0) || g.IsName() != (pattern == "a") || g.Is("a") != (pattern == "a") || string(g) != pattern {
			t.Errorf("%q is %+v, %v", pattern, g, err)
		}
		if want := []int{0, 1, 2, 3, 1 + maxGlob}[i]; g.Weight() != want {
			t.Errorf("%q weighs %d, want %d", pattern, g.Weight(), want)
		}
	}
	if g := Everything; !g.IsEverything() || g.Is("") || g.Matches("") {
		t.Errorf("%+v", g)
	}
}

func TestChoice(t *testing.T) {
	if got, err := Choice([]byte("b"), "a", "b"); got != "b" || err != nil {
		t.Error(got, err)
	}
	if got, err := Choice([]byte("B"), "a", "b"); got != "" || err == nil || err.Error() != `"B" is none of "a", "b"` {
		t.Error(got, err)
	}
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) { return map[string]string{"A": "one", "B": "t\no"}[name], name != "C" }
	for value, want := range map[string]string{
		"Bearer ${env:A}/${env:A}": "Bearer one/one [one one]",
		"Bearer plain":             "Bearer plain [plain]",
		"${env:C}":                 "the variable C is not set",
		"${env:D}":                 "the variable D is not set",
		"${env:A":                  "a ${env: has no }",
		"${env:B}":                 "its value cannot stand in a header",
	} {
		got, secrets, err := Expand(value, lookup)
		if all := fmt.Sprint(got, " ", secrets, err); !strings.Contains(all, want) {
			t.Errorf("%s: %s, want %s", value, all, want)
		}
	}
	for name, want := range map[string]bool{"A_1": true, "": false, "1A": false, "A-B": false, "É": false} {
		if IsVariable(name) != want {
			t.Errorf("IsVariable(%q)", name)
		}
	}
}

func TestReasonsAreThereOnce(t *testing.T) {
	var r Reasons
	for _, reason := range []string{"b", "a", "b"} {
		r.Add(reason)
	}
	if strings.Join(r, " ") != "b a" {
		t.Error(r)
	}
}
