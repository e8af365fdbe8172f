package rootdir

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
)

// asOwner calls f as an ordinary user, the owner of the root and of those directories in it that
// get these modes before.
func asOwner(t *testing.T, root *os.Root, modes map[string]fs.FileMode, f func()) {
	t.Helper()
	owned := []string{root.Name()}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(modes))) { // the inner ones first
		path := filepath.Join(root.Name(), name)
		if err := os.Chmod(path, modes[name]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // it may be removed
		owned = append(owned, path)
	}
	ostest.Ordinary(t, f, owned...)
}

func wantMode(t *testing.T, root *os.Root, name string, want fs.FileMode) {
	t.Helper()
	info, err := root.Lstat(name)
	if err != nil {
		t.Error(err)
	} else if info.Mode().Perm() != want {
		t.Errorf("%s has %v; want %v", name, info.Mode(), want)
	}
}

func TestMakeDirGetsIntoClosedDirectories(t *testing.T) {
	root := openRoot(t, map[string]string{"d/f": ""})
	asOwner(t, root, map[string]fs.FileMode{"d": 0o555}, func() {
		if err := MakeDir(root, "d/new"); err != nil {
			t.Error(err)
		}
	})
	wantMode(t, root, "d/new", 0o755)
	if err := MakeDir(root, "none/new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its parent: %v", err)
	}
}

// TestWhatIsThereKeepsItsMode: a link could lead to anything.
func TestWhatIsThereKeepsItsMode(t *testing.T) {
	root := openRoot(t, map[string]string{"d/f": "", "link": "-> d"})
	if err := root.Chmod("d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "link"} {
		if err := MakeDir(root, name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a directory %s: %v", name, err)
		}
	}
	if err := MakeFile(root, "d", "text"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a file d: %v", err)
	}
	if err := MakeFile(root, "d/g", "text"); err != nil {
		t.Error(err)
	}
	wantMode(t, root, "d", 0o700)
	wantMode(t, root, "d/g", 0o644)
}

// TestMakeFileSaysWhatForbidsIt, not that the directories are missing that could not be made.
func TestMakeFileSaysWhatForbidsIt(t *testing.T) {
	root := openRoot(t, nil)
	asOwner(t, root, map[string]fs.FileMode{".": 0o555}, func() {
		for _, name := range []string{"a/f", "a/b/f"} {
			if err := MakeFile(root, name, ""); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestMakeInsideKeepsModeAndTime(t *testing.T) {
	root := openRoot(t, map[string]string{"d/f": ""})
	asOwner(t, root, map[string]fs.FileMode{"d": 0o555}, func() {
		before, err := root.Stat("d")
		if err != nil {
			t.Fatal(err)
		}
		if err := MakeInside(root, "d", func() error { return root.Mkdir("d/new", 0o755) }); err != nil {
			t.Fatal(err)
		}
		after, err := root.Stat("d")
		if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("was %v, is %v, %v", before, after, err)
		}
	})
	if _, err := root.Stat("d/new"); err != nil {
		t.Errorf("nothing was made: %v", err)
	}
}

func TestMakeInsideFails(t *testing.T) {
	refused := errors.New("refused")
	root := openRoot(t, map[string]string{"d/f": ""})
	if err := MakeInside(root, "d", func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("what failed: %v", err)
	}
	proc, err := os.OpenRoot("/proc") // nobody may change modes there
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	for dir, want := range map[string]error{"none": fs.ErrNotExist, strconv.Itoa(os.Getpid()): fs.ErrPermission} {
		err := MakeInside(proc, dir, func() error { t.Errorf("%s: something is made in it", dir); return nil })
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", dir, err, want)
		}
	}
}

func TestRemoveAllCopesWithClosedDirectories(t *testing.T) {
	root := openRoot(t, map[string]string{"x/a/b/c/f": "", "x/a/\xe9/d/f": ""})
	t.Chdir(root.Name()) // the user cannot enter what is above it
	modes := map[string]fs.FileMode{"x": 0, "x/a": 0, "x/a/b": 0, "x/a/b/c": 0, "x/a/\xe9": 0, "x/a/\xe9/d": 0}
	asOwner(t, root, modes, func() {
		if err := RemoveAll("x"); err != nil {
			t.Error(err)
		}
	})
	if _, err := root.Lstat("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if open := ostest.OpenFiles(t, root.Name()+"/"); len(open) > 0 {
		t.Errorf("still open are %q", open)
	}
	if err := RemoveAll("x"); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestRemoveAllChangesNothingBehindALink(t *testing.T) {
	root := openRoot(t, map[string]string{"closed/link": "-> ../other", "other/d/f": ""})
	t.Chdir(root.Name())
	for _, mode := range []fs.FileMode{0o555, 0} {
		asOwner(t, root, map[string]fs.FileMode{"closed": mode, "other": 0o755, "other/d": 0o755}, func() {
			if err := RemoveAll("closed/link"); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("in a directory with %v: %v", mode, err)
			}
		})
		wantMode(t, root, "other", 0o755)
		wantMode(t, root, "other/d", 0o755)
	}
}
