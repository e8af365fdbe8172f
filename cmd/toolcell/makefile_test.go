package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	there, function := map[string]bool{}, regexp.MustCompile(`(?m)^func Test(\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(source), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?s)(MAIN_JOB|LONG|SLOW) := \^Test\((.*?)\)\$\$`).FindAllStringSubmatch(string(makefile), -1)
	for _, list := range lists {
		for name := range strings.SplitSeq(strings.ReplaceAll(list[2], "$\\\n", ""), "|") {
			if !there[name] {
				t.Errorf("%s in the Makefile names Test%s, which is no test", list[1], name)
			}
		}
	}
	if len(lists) != 3 {
		t.Errorf("the Makefile has %d lists of tests", len(lists))
	}
}
