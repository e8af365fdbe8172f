package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
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
		if found++; !strings.HasPrefix(line, "\t@.ci/building.sh $@ go build ") {
			t.Errorf("-trimpath is not for go build alone: %s", line)
		}
	}
	if found != 1 {
		t.Errorf("-trimpath is in %d lines, want it where bin/toolcell is built", found)
	}
}

// TestABuildShowsErrors: what the compiler says comes through as it is, and so does the exit
// code. The names of packages do not.
func TestABuildShowsErrors(t *testing.T) {
	script := `echo 'go: downloading example.com/x v1.0.0' >&2
for n in 1 2 3; do echo "example.com/x/p$n" >&2; done
printf '%s\n' '# example.com/x/p3' './p3.go:1:2: undefined: f' '' '	a note' >&2
exit 3`
	out, err := exec.Command("../../.ci/building.sh", "bin/x", "sh", "-c", script).CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if !failed || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v, want the exit code 3", err)
	}
	want := "toolcell: building bin/x; the first time takes minutes\n# example.com/x/p3\n./p3.go:1:2: undefined: f\n\n\ta note\n"
	if string(out) != want {
		t.Errorf("it printed %q\nwant %q", out, want)
	}
}

// TestVersionIsTheNewestInTheChangelog: the version that the program prints has a section
// there, or is that of the next release.
func TestVersionIsTheNewestInTheChangelog(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?m)^## \[([^]]*)\](?: - \d{4}-\d\d-\d\d)?$`).FindAllStringSubmatch(string(changelog), -1)
	if len(sections) == 0 {
		t.Fatal("CHANGELOG.md has no sections")
	}
	newest, unreleased := sections[0][1], sections[0][1] == "Unreleased"
	if dev := strings.HasSuffix(version, "-dev"); dev != unreleased || !dev && newest != version {
		t.Errorf("the version is %q, and the first section of CHANGELOG.md is %q", version, newest)
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
