package repl

import (
	"os"
	"path/filepath"
	"testing"
)

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
