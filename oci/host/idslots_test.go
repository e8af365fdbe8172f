package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inDir makes slots that are locked in dir.
func inDir(t *testing.T, dir string, ids IDRange) *IDSlots {
	t.Helper()
	s := OpenIDSlots(IDRange{}, 0)
	s.ids = ids
	var err error
	if s.file, err = openIn(dir, os.Geteuid()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestNoTwoSandboxesHaveOneID, whichever process they are of: an open file is to
// the kernel what a process would be.
func TestNoTwoSandboxesHaveOneID(t *testing.T) {
	dir, ids := filepath.Join(t.TempDir(), "toolcell"), IDRange{BaseID, 5}
	one, other := inDir(t, dir, ids), inDir(t, dir, ids)
	seen := map[int64]bool{}
	var last *IDSlot
	for n, s := range []*IDSlots{one, other, one, other, other} {
		last = s.Acquire()
		if seen[last.ID] || !ids.Contains(last.ID) {
			t.Errorf("number %d: %d was given out", n, last.ID)
		}
		seen[last.ID] = true
	}
	if notes := one.Notes(); len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
	extra := one.Acquire()
	if !ids.Contains(extra.ID) || !strings.Contains(strings.Join(one.Notes(), ""), "all 5 user IDs") {
		t.Errorf("with none left: %d, notes %q", extra.ID, one.Notes())
	}
	extra.Release() // was never its own
	last.Release()
	last.Release()
	if got := one.Acquire().ID; got != last.ID {
		t.Errorf("got %d, want %d, which was released", got, last.ID)
	}
	other.Close() // as the kernel does for a process that was killed
	third := inDir(t, dir, ids)
	if again := third.Acquire(); !seen[again.ID] || len(third.Notes()) > 0 {
		t.Errorf("after the end of a process: %d, notes %q", again.ID, third.Notes())
	}
}

func TestNoIDsToGiveOut(t *testing.T) {
	s := OpenIDSlots(IDRange{}, os.Geteuid())
	if got := s.Acquire(); got != nil {
		t.Errorf("got %+v", got)
	}
	s.Acquire().Release()
	if notes := s.Notes(); len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
}

// TestLocksAreNotInFoldersOfOthers: in /tmp anyone may have been there first.
func TestLocksAreNotInFoldersOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"a link":           func(path string) error { return os.Symlink(dir, path) },
		"a file":           func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"open to everyone": func(path string) error { return os.Chmod(mkdir(t, path), 0o777) },
		"its file a link": func(path string) error {
			return os.Symlink(filepath.Join(dir, "victim"), filepath.Join(mkdir(t, path), "uids"))
		},
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if f, err := openIn(path, os.Geteuid()); err == nil {
			f.Close()
			t.Errorf("%s was taken", name)
		}
	}
	if f, err := openIn(mkdir(t, filepath.Join(dir, "of another")), os.Geteuid()+1); err == nil {
		f.Close()
		t.Error("a folder of another user was taken")
	}
	if _, err := os.Lstat(filepath.Join(dir, "victim")); err == nil {
		t.Error("a file was made through a link")
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
