package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestDiffShowsWhatDiffers(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, want string }{
		"nothing":  {"a\n", "a\n", ""},
		"new":      {"", "a\nb\n", "--- f\n+++ f\n@@ line 1 @@\n+a\n+b\n"},
		"gone":     {"a\nb", "", "--- f\n+++ f\n@@ line 1 @@\n-a\n-b\n"},
		"a change": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "--- f\n+++ f\n@@ line 2 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		"too much": {strings.Repeat("a\n", 2000), "", "f: more than 1000 lines change\n"},
	} {
		if got := diff("f", []byte(tt.before), []byte(tt.after)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestDiffLeadsFromOneToTheOther: what stays and goes is the old text, what stays
// and comes the new one.
func TestDiffLeadsFromOneToTheOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		a, b := make([]string, r.IntN(30)), make([]string, r.IntN(30))
		for i := range a {
			a[i] = strconv.Itoa(r.IntN(5))
		}
		for i := range b {
			b[i] = strconv.Itoa(r.IntN(5))
		}
		var from, to []string
		for _, e := range lineEdits(a, b) {
			if e.kind != '+' {
				from = append(from, e.text)
			}
			if e.kind != '-' {
				to = append(to, e.text)
			}
		}
		if !slices.Equal(from, a) || !slices.Equal(to, b) {
			t.Fatalf("%v to %v: edits make %v of %v", a, b, to, from)
		}
	}
}
