package repl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHistoryIsBounded: the newest lines stay, in the file too.
func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	longest := strings.Repeat("x", maxHistoryLine)
	h := openHistory(path)
	for i := range maxHistory + 4 {
		h.add(fmt.Sprint("line ", i))
	}
	h.add(longest)
	h.add(longest)       // again
	h.add(longest + "x") // too long
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\n" + longest + "x\n"); err != nil { // as another program may write it
		t.Fatal(err)
	}
	for range 2 {
		h = openHistory(path)
		if n := len(h.lines); n != maxHistory || h.lines[0] != "line 5" || h.lines[n-1] != longest || h.lines[n-2] != fmt.Sprint("line ", maxHistory+3) {
			t.Fatalf("%d lines from %q to %.20q", n, h.lines[0], h.lines[n-1])
		}
	}
	if body, _ := os.ReadFile(path); strings.Count(string(body), "\n") != maxHistory {
		t.Errorf("the file has %d lines", strings.Count(string(body), "\n"))
	}
}

// TestHistoryFollowsNoLink: a program that can write to the folder must not choose
// the file that we write to.
func TestHistoryFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, "state", "history")); err != nil {
		t.Fatal(err)
	}
	h := openHistory(filepath.Join(dir, "state", "history"))
	h.add("theirs")
	if body, _ := os.ReadFile(precious); string(body) != "mine\n" || len(h.lines) != 1 {
		t.Errorf("%q, lines %q", body, h.lines)
	}
}
