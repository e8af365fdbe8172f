package npm

import (
	"slices"
	"testing"
)

func TestDiff(t *testing.T) {
	at := func(path, name, version, sum string) Package {
		return Package{Path: path, Name: name, Version: version, SHA512: sum}
	}
	before := &Tree{packages: []Package{
		at("1", "same", "1.0.0", "s"), at("2", "moved", "1.0.0", "m"), at("3", "changed", "1.0.0", "c"), at("4", "gone", "1.0.0", "g"),
		at("5", "several", "1.0.0", "a"), at("6", "several", "2.0.0", "b"), at("7", "other contents", "1.0.0", "o"),
	}}
	after := &Tree{packages: []Package{
		at("1", "same", "1.0.0", "s"), at("9", "moved", "1.0.0", "m"), at("3", "changed", "1.1.0", "d"), at("4", "new", "3.0.0", "n"),
		at("5", "several", "2.0.0", "b"), at("6", "several", "3.0.0", "e"), at("8", "several", "4.0.0", "f"), at("7", "other contents", "1.0.0", "p"),
	}}
	want := []Change{
		{"changed", "1.0.0", "1.1.0"}, {"gone", "1.0.0", ""}, {"new", "", "3.0.0"}, {"other contents", "1.0.0", "1.0.0"}, {"several", "1.0.0", "3.0.0"}, {"several", "", "4.0.0"},
	}
	if got := Diff(before, after); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := Diff(after, after); len(got) > 0 {
		t.Errorf("with itself: %v", got)
	}
}
