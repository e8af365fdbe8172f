package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOnlyBinariesLeaveOutPaths: with -trimpath, go vet and go test of one clone take
// results from Go's cache that name files of cgo in another clone, which may be gone.
func TestOnlyBinariesLeaveOutPaths(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(makefile)) {
		if !strings.Contains(line, "-trimpath") {
			continue
		}
		if found++; !strings.HasPrefix(line, "\tgo build ") {
			t.Errorf("-trimpath is not for go build alone: %s", line)
		}
	}
	if found != 1 {
		t.Errorf("-trimpath is in %d lines, want it where bin/toolcell is built", found)
	}
}

// TestNamesInTheMakefileAreOfTests: a test that was renamed would run where it is meant to
// be left out, or nowhere.
func TestNamesInTheMakefileAreOfTests(t *testing.T) {
	source, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	makefile := strings.ReplaceAll(string(source), "$\\\n", "")
	concurrent := regexp.MustCompile(`(?m)` + regexp.MustCompile(`(?m)^CONCURRENT := (.*)$`).FindStringSubmatch(makefile)[1])
	folders, raced := map[string]string{}, map[string]bool{} // of tests; and which of them the race detector watches
	function := regexp.MustCompile(`(?m)^func Test(\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		if concurrent.Match(source) {
			raced[filepath.Dir(path)] = true
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range function.FindAllSubmatch(source, -1) {
				folders[string(found[1])] = filepath.Dir(path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^(\w+) := \^Test\((.*?)\)\$\$`).FindAllStringSubmatch(makefile, -1) {
		lists[found[1]] = strings.Split(found[2], "|")
		for _, name := range lists[found[1]] {
			if folders[name] == "" {
				t.Errorf("%s in the Makefile names Test%s, which is no test", found[1], name)
			}
		}
	}
	if len(lists) != 4 {
		t.Errorf("the Makefile has %d lists of tests", len(lists))
	}
	for _, name := range lists["LONG"] {
		if name != "Bounds" && (!raced[folders[name]] || slices.Contains(lists["ALONE"], name)) { // which has a line of its own
			t.Errorf("Test%s is in LONG and would not run with the race detector either", name)
		}
	}
}
