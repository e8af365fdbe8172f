package main

import (
	"bytes"
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

// TestMarksSayWhereTestsRun: a mark that the Makefile does not find would have its test run
// where it is meant to be left out, and a long test that is left out of the race detector,
// too, would run nowhere.
func TestMarksSayWhereTestsRun(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	concurrent := regexp.MustCompile(`(?m)` + regexp.MustCompile(`(?m)^CONCURRENT := (.*)$`).FindStringSubmatch(string(makefile))[1])
	marks := regexp.MustCompile(`(?m)^[ \t]*//[ \t]*test:.*\n.*`)
	used := regexp.MustCompile(`^//test:(\w+)\nfunc Test[A-Za-z0-9]+\(t \*testing\.T\)`)
	count, raced, long := map[string]int{}, map[string]bool{}, map[string]bool{} // by kind, and by folder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		if concurrent.Match(source) {
			raced[filepath.Dir(path)] = true
		}
		for _, mark := range marks.FindAllString(string(source), -1) {
			kind := used.FindStringSubmatch(mark)
			switch {
			case kind == nil || !strings.HasSuffix(path, "_test.go"):
				t.Errorf("%s: no test is below %q", path, mark)
				continue
			case !strings.Contains(string(makefile), "$(call marked,"+kind[1]+")"):
				t.Errorf("%s: the Makefile does not know %q", path, mark)
			case kind[1] == "mainjob" != (filepath.Base(filepath.Dir(path)) == "e2e"):
				t.Errorf("%s: not for tests of this package: %q", path, mark)
			case kind[1] == "long":
				long[filepath.Dir(path)] = true
				if bytes.Contains(source, []byte("//go:build !race")) {
					t.Errorf("%s: nothing would run what is below %q", path, mark)
				}
			}
			count[kind[1]]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range long {
		if !raced[folder] {
			t.Errorf("%s has long tests, and the race detector does not watch it", folder)
		}
	}
	if len(count) != 3 {
		t.Errorf("marks: %v, want three kinds", count)
	}
}
