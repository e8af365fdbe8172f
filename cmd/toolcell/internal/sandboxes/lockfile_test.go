package sandboxes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockReplacesALinkAndNotItsFile: a project of others can have a link to any file.
func TestLockReplacesALinkAndNotItsFile(t *testing.T) {
	dir := t.TempDir()
	script, behind, lock := filepath.Join(dir, "s.py"), filepath.Join(dir, "behind"), filepath.Join(dir, "pylock.s.toml")
	if err := os.WriteFile(behind, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{behind, "behind", filepath.Join(dir, "not there")} {
		_ = os.Remove(lock)
		if err := os.Symlink(target, lock); err != nil {
			t.Fatal(err)
		}
		file, was, err := WriteLock(script, []byte("lock"))
		if err != nil || file != lock || was != target {
			t.Fatalf("%s: got %q, %q, %v", target, file, was, err)
		}
		if text, _ := os.ReadFile(behind); string(text) != "mine" {
			t.Errorf("%s: the file behind the link has %q", target, text)
		}
		if info, err := os.Lstat(lock); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: the lock is %v, %v", target, info, err)
		}
	}
	if err := os.Chmod(lock, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, was, err := WriteLock(script, []byte("newer")); err != nil || was != "" {
		t.Errorf("again: %q, %v", was, err)
	}
	text, _ := os.ReadFile(lock)
	if info, err := os.Stat(lock); err != nil || info.Mode() != 0o640 || string(text) != "newer" {
		t.Errorf("again: %v, %v, %q", info.Mode(), err, text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("%q stay", left)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := WriteLock(script, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
