package main

import (
	"slices"
	"testing"
)

// TestBashWords: bash hands over a line, which has to be read as it reads it.
func TestBashWords(t *testing.T) {
	const breaks = " \t\n\"'@><=;|&(:"
	for _, tt := range []struct {
		line  string
		words []string
		value string // of a candidate
		want  string // what is inserted
	}{
		{"toolcell ex", []string{"ex"}, "exec", "exec"},
		{"toolcell exec ", []string{"exec", ""}, "a", "a"},
		{"toolcell  images\trm  oci:/a", []string{"images", "rm", "oci:/a"}, "oci:/abc", "/abc"},
		{"toolcell exec --image=oci:/a", []string{"exec", "--image=oci:/a"}, "--image=oci:/a b", `/a\ b`},
		{`toolcell tools "My Ser`, []string{"tools", "My Ser"}, "My Server", "My Server"},
		{`toolcell tools My\ Ser`, []string{"tools", "My Ser"}, "My Server", `My\ Server`},
		{`toolcell exec -c 'a "b"' x`, []string{"exec", "-c", `a "b"`, "x"}, "xy$", `xy\$`},
	} {
		words, insert := bashWords(tt.line, breaks)
		if !slices.Equal(words, tt.words) || insert(tt.value) != tt.want {
			t.Errorf("%s: words %q, %q inserted; want %q, %q", tt.line, words, insert(tt.value), tt.words, tt.want)
		}
	}
}
