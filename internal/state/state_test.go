package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadingIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, _, err := ReadExact(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("as much as may be: %q, %v", data, err)
	}
	if data, _, err := ReadExact(path, 4); err == nil || data != nil || err.Error() != "is larger than 4 bytes" {
		t.Errorf("more: %q, %v", data, err)
	}
}

// TestKilledWriterLeavesNothingForEver: what a process left that was killed
// while it wrote may hold secrets, and is gone with the next change.
func TestKilledWriterLeavesNothingForEver(t *testing.T) {
	dir := t.TempDir()
	file := File[string]{filepath.Join(dir, "values.json")}
	if err := os.WriteFile(file.Path+".new", []byte(`{"a":"SECRET, and much longer than what comes`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.Change(func(all map[string]string) { all["a"] = "1" }); err != nil {
		t.Fatal(err)
	}
	if all, err := file.Read(); err != nil || all["a"] != "1" || len(all) != 1 {
		t.Errorf("read %v, %v", all, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 { // the file and its lock
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(file.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestReplaceFollowsNoLink: others may have put links where a file is to be, or is
// written first.
func TestReplaceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	other, path := filepath.Join(dir, "other"), filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(other, []byte("theirs"), 0o600), os.Symlink(other, path), os.Symlink(other, Unfinished(path))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.Symlink(other, filepath.Join(dir, ".toolcell-new")), os.Symlink(other, filepath.Join(dir, "inside"))); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(Replace(path, []byte("ours"), Options{Locked: true}), ReplaceIn(root, "inside", []byte("ours"), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"other": "theirs", "file": "ours", "inside": "ours"} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestReplaceIsWholeOrNotAtAll(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir, elsewhere := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "file")
	var seen string
	for _, tt := range []struct {
		o    Options
		mode fs.FileMode
	}{
		{Options{}, 0o600},
		{Options{Mode: 0o644}, 0o600},
		{Options{Mode: 0o644, Exact: true}, 0o644},
		{Options{Mode: 0o444, Exact: true, Unsynced: true, TempDir: elsewhere}, 0o444},
		{Options{Finish: func(f *os.File) error { seen = f.Name(); return f.Chmod(0o640) }}, 0o640},
		{Options{Locked: true}, 0o600},
	} {
		if err := Replace(path, []byte("text"), tt.o); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != tt.mode || info.Size() != 4 {
			t.Errorf("%+v: %v, %v", tt.o, info, err)
		}
	}
	if !isTemp(filepath.Base(seen)) || isTemp("file") {
		t.Errorf("%s is not taken for unfinished", seen)
	}
	refuse := errors.New("it changed meanwhile")
	if err := Replace(path, []byte("other"), Options{Finish: func(*os.File) error { return refuse }}); !errors.Is(err, refuse) {
		t.Errorf("got %v", err)
	}
	if err := Replace(dir, []byte("a folder is there"), Options{}); err == nil {
		t.Error("a folder was replaced")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	for _, d := range []string{dir, elsewhere, filepath.Dir(dir)} {
		if left, _ := filepath.Glob(filepath.Join(d, tempPrefix+"*")); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
	}
}

func TestLockOfARemovedFileIsNotInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	unlock, err := Lock(t.Context(), path, Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path, 0, Exclusive); !errors.Is(err, ErrLocked) {
		t.Errorf("a second holder: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Lock(ended, path, Exclusive); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("waiting: %v", err)
	}
	shared, err := TryLock(path, unix.O_NOFOLLOW, Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if !InPlace(shared) {
		t.Error("the file is not in place")
	}
	unlock()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if InPlace(shared) {
		t.Error("a removed file is in place")
	}
	if _, err := TryLock(path, 0, Exclusive); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file that is not there: %v", err)
	}
	folder, err := TryLock(filepath.Dir(path), unix.O_DIRECTORY, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
}

// TestSameFileByAnyName: by a link of either kind, and not a file with the same content.
func TestSameFileByAnyName(t *testing.T) {
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "file"), filepath.Join(dir, "copied")
	err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.WriteFile(copied, []byte("x"), 0o600),
		os.Link(file, dir+"/hard"), os.Symlink("file", dir+"/soft"), os.Symlink("gone", dir+"/dangling"), os.Symlink(dir, dir+"/folder"))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range map[[2]string]bool{
		{file, file}: true, {file, dir + "/hard"}: true, {dir + "/soft", file}: true, {dir, dir + "/folder/."}: true,
		{file, copied}: false, {file, dir}: false, {dir + "/gone", dir + "/gone"}: false, {dir + "/dangling", dir + "/dangling"}: false, {file, ""}: false,
	} {
		if got := SameFile(pair[0], pair[1]); got != want {
			t.Errorf("%q: %t", pair, got)
		}
	}
}

// TestStampTellsChangesApart: what programs can set back, and writes within one step of
// the clock.
func TestStampTellsChangesApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := StampOf(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	long := time.Now().Add(-time.Hour)
	seen := map[Stamp]string{}
	for _, tt := range []struct {
		what   string
		change func() error
	}{
		{"made", func() error { return os.WriteFile(path, []byte("one"), 0o600) }},
		{"longer", func() error { return os.WriteFile(path, []byte("three"), 0o600) }},
		{"other time", func() error { return os.Chtimes(path, long, long) }},
		{"replaced by one of the same size and time", func() error {
			return errors.Join(Replace(path, []byte("seven"), Options{}), os.Chtimes(path, long, long))
		}},
		{"other mode", func() error { return os.Chmod(path, 0o640) }},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		s, err := StampOf(path)
		if before, ok := seen[s]; err != nil || ok {
			t.Errorf("%s: as %q, %v", tt.what, before, err)
		}
		if s.Settled() {
			t.Errorf("%s: settled at once", tt.what)
		}
		s.Changed -= int64(3 * time.Second)
		if !s.Settled() || !(Stamp{}).Settled() {
			t.Errorf("%s: not settled", tt.what)
		}
		s.Changed += int64(3 * time.Second)
		seen[s] = tt.what
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s, err := StampOfFile(f); err != nil || seen[s] == "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := StampOfFD(-1, "a/b"); err == nil || err.Error() != "stat a/b: bad file descriptor" {
		t.Errorf("of no file: %v", err)
	}
}

func TestUnusedFilesAreForgotten(t *testing.T) {
	f := Folder{Dir: filepath.Join(t.TempDir(), "d"), Suffix: ".json", Unused: 48 * time.Hour, Max: 2}
	if removed := f.Prune(nil); removed != nil {
		t.Errorf("removed from no folder: %q", removed)
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, age time.Duration) {
		path, at := filepath.Join(f.Dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	for name, hours := range map[string]time.Duration{
		"kept.json": 99, "new.json": 1, "second.json": 30, "third.json": 40, "old.json": 50, "half.json.new": 60,
		"other.txt": 99, tempPrefix + "kept.json-A": 2, tempPrefix + "kept.json-B": 0,
	} {
		put(name, hours*time.Hour)
	}
	folder, link := filepath.Join(f.Dir, "folder.json"), filepath.Join(f.Dir, "link.json")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink("kept.json", link), os.Chtimes(folder, time.Time{}, time.Unix(9, 0))); err != nil {
		t.Fatal(err)
	}
	Touch(filepath.Join(f.Dir, "second.json")) // of no more than a day ago now
	removed := f.Prune(map[string]bool{"kept": true})
	slices.Sort(removed)
	if want := []string{tempPrefix + "kept.json-A", "half.json.new", "old.json", "third.json"}; !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
	if info, err := os.Stat(filepath.Join(f.Dir, "second.json")); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("%v, %v", info, err)
	}
	put("few.json", 49*time.Hour)
	f.Max = 9
	if removed := f.Prune(map[string]bool{"kept": true}); !slices.Equal(removed, []string{"few.json"}) {
		t.Errorf("of few files: %q", removed)
	}
}
