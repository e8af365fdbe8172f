package state

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// written makes a file with a content in a new folder.
func written(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "is a directory", pipe: "is not a regular file"} {
		if data, err := ReadRegular(path, 9); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v; want %s", path, data, err, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(written(t, ""), "below a file")} {
		if data, err := ReadRegular(path, 9); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

func TestReasonNamesNoPath(t *testing.T) {
	_, open := os.Open("/none/here")
	for _, err := range []error{open, os.Rename("/none/here", "/none/there"), syscall.ENOENT} {
		if got := Reason(err); got != "no such file or directory" {
			t.Errorf("%v: %s", err, got)
		}
	}
}

func TestReplaceSaysWhatIsInItsWay(t *testing.T) {
	path := written(t, "old")
	if err := Replace(filepath.Join(path+"none", "file"), nil, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(Unfinished(path), "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new"), Options{Locked: true}); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("a folder in place of the unfinished file: %v", err)
	}
	file := File[string]{path + "none"}
	if err := os.MkdirAll(filepath.Join(Unfinished(file.Path), "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := file.Change(func(all map[string]string) { all["a"] = "1" })
	if err == nil || !strings.HasPrefix(err.Error(), "writing "+file.Path+": ") {
		t.Errorf("a map: %v", err)
	}
}

// unsyncable makes files that no disk takes.
type unsyncable struct{ system }

func (unsyncable) OpenFile(string, int, fs.FileMode) (*os.File, error) {
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}

// TestWhatIsNotOnDiskReplacesNothing, except what can be made again.
func TestWhatIsNotOnDiskReplacesNothing(t *testing.T) {
	for unsynced, want := range map[bool]string{false: "old", true: "new"} {
		path := written(t, "old")
		temp := path + ".temp"
		if err := os.WriteFile(temp, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replace(unsyncable{}, temp, path, []byte("new"), Options{Unsynced: unsynced})
		if unsynced != (err == nil) {
			t.Errorf("unsynced %v: %v", unsynced, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("unsynced %v: %q, %v", unsynced, got, err)
		}
	}
}

// TestMapThatCannotBeReadIsLeftToItsUser, who may have edited it.
func TestMapThatCannotBeReadIsLeftToItsUser(t *testing.T) {
	path := written(t, `{"a": `)
	file, want := File[string]{path}, "reading "+path+": unexpected end of JSON input; correct or remove it"
	_, reading := file.Read()
	changing := file.Change(func(map[string]string) { t.Error("it is changed") })
	for what, err := range map[string]error{"reading": reading, "changing": changing} {
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != `{"a": ` {
		t.Errorf("it has %q, %v", got, err)
	}
	below := File[string]{filepath.Join(path, "file")}
	err := below.Change(func(map[string]string) { t.Error("it is changed without a lock") })
	if err == nil || !strings.HasPrefix(err.Error(), "locking "+below.Path+": ") {
		t.Errorf("without a folder: %v", err)
	}
}

func TestMapThatCannotBeWrittenStays(t *testing.T) {
	file := File[float64]{written(t, `{"a": 1}`)}
	if err := file.Change(func(all map[string]float64) { all["b"] = math.NaN() }); err == nil {
		t.Error("what is no JSON is no error")
	}
	if all, err := file.Read(); err != nil || all["a"] != 1 || len(all) != 1 {
		t.Errorf("read %v, %v", all, err)
	}
	lock, err := TryLock(file.Path+".lock", 0, Exclusive)
	if err != nil {
		t.Fatalf("its lock: %v", err)
	}
	defer lock.Close()
}

func TestLockThatCannotBeMadeIsNotWaitedFor(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Lock(ended, t.TempDir(), Exclusive); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	inFolder(t, 0o500, func() {
		if _, err := Lock(ended, "d/none/lock", Exclusive); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("in a folder that cannot be made: %v", err)
		}
	})
}

// inFolder calls f as an ordinary user, the owner of a folder d with this mode.
func inFolder(t *testing.T, mode fs.FileMode, f func()) {
	t.Helper()
	t.Chdir(t.TempDir()) // the user cannot enter what is above it
	if err := errors.Join(os.Mkdir("d", 0o700), os.WriteFile("d/old.json", nil, 0o600), os.Chmod("d", mode)); err != nil {
		t.Fatal(err)
	}
	ostest.Ordinary(t, f, ".", "d")
	if err := os.Chmod("d", 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestLockedFileCanBeWrittenUntilItsEnd(t *testing.T) {
	path := written(t, "")
	unlock, err := Lock(t.Context(), path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	f, err := TryLock(path, 0, Exclusive)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	defer f.Close()
	if _, err := f.WriteString("12"); err != nil {
		t.Error(err)
	}
	if data, err := ReadRegular(path, 2); err != nil || string(data) != "12" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := TryLock(path, 0, Shared); !errors.Is(err, ErrLocked) {
		t.Errorf("a second holder: %v", err)
	}
	Folder{Dir: filepath.Dir(path), Max: 1}.Prune(map[string]bool{"file": true})
	if open := ostest.OpenFiles(t, filepath.Dir(f.Name())); len(open) != 1 {
		t.Errorf("open are %q", open)
	}
}

func TestFoldersThatCannotBeRead(t *testing.T) {
	inFolder(t, 0o300, func() {
		if paths, err := Match("d", "*"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a match without a list: %q, %v", paths, err)
		}
	})
	inFolder(t, 0o400, func() { // of each file only the name
		if removed := (Folder{Dir: "d", Suffix: ".json", Max: 1}).Prune(nil); removed != nil {
			t.Errorf("removed %q", removed)
		}
	})
}

func TestOthersWriteUnlessTheGroupIsTheOwners(t *testing.T) {
	for _, tt := range []struct {
		mode         fs.FileMode
		owner, group int
		want         bool
	}{
		{0o755, 1, 2, false},
		{0o775, 1, 2, true},
		{0o775, 1, 1, false},
		{0o757, 1, 1, true},
		{0o777 | fs.ModeSticky, 0, 0, true},
	} {
		if got := OthersWrite(tt.mode, tt.owner, tt.group); got != tt.want {
			t.Errorf("%v of %d in %d: %v", tt.mode, tt.owner, tt.group, got)
		}
	}
}

// TestUnlinkedFilesAreNoLinks: who puts a link into a project must not learn what a file of the user's has.
func TestUnlinkedFilesAreNoLinks(t *testing.T) {
	path := written(t, "\ufeffa = 1")
	if data, err := ReadUnlinked(path, 10); err != nil || string(data) != "a = 1" {
		t.Errorf("%q, %v", data, err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadUnlinked(link, 10); err == nil || err.Error() != "is a link" {
		t.Errorf("a link: %q, %v", data, err)
	}
	if data, err := ReadUnlinked(path, 5); err == nil || err.Error() != "is larger than 5 bytes" {
		t.Errorf("a large file: %q, %v", data, err)
	}
	for _, gone := range []string{path + ".none", filepath.Join(path, "x")} {
		if _, err := ReadUnlinked(gone, 10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
}
