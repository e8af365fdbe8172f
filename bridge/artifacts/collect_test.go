package artifacts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// emptyWorkspace opens a workspace and returns the path of its folder out.
func emptyWorkspace(t *testing.T) (out string, w *Workspace) {
	t.Helper()
	dir := t.TempDir()
	out = filepath.Join(dir, outDir)
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	return out, NewWorkspace(opened(t, dir), nil)
}

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// written writes files whose content is their name, and the folders above them.
func written(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// endOfRun collects what is in a workspace at the end of a run.
func endOfRun(t *testing.T, s *Store, w *Workspace) Published {
	t.Helper()
	c := s.NewCollector(t.Context(), newRunID())
	defer c.Discard()
	c.Collect(w)
	return c.Finish()
}

func listed(left Published) (names []string) {
	for _, f := range left.Files {
		names = append(names, f.Name)
	}
	return names
}

func keepingStore(t *testing.T) *Store {
	t.Helper()
	return New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
}

// TestFilesAreCollectedOnce by the runs of one session, unless they change.
func TestFilesAreCollectedOnce(t *testing.T) {
	s := keepingStore(t)
	out, w := emptyWorkspace(t)
	for _, run := range []struct{ writes, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{nil, nil},
		{[]string{"b", "c"}, []string{"b", "c"}},
	} {
		if written(t, out, run.writes...); !slices.Equal(listed(endOfRun(t, s, w)), run.want) {
			t.Errorf("after %v, other files than %v", run.writes, run.want)
		}
	}
}

// TestFilesAreListedByName, whatever order their folder has.
func TestFilesAreListedByName(t *testing.T) {
	want := append(numbered("f%02d", 40), "sub_x", "sub_y")
	out, w := emptyWorkspace(t)
	written(t, out, "sub/y", "sub/x")
	for _, name := range slices.Backward(want[:40]) {
		written(t, out, name)
	}
	if got := listed(endOfRun(t, keepingStore(t), w)); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestWhatIsNoFileIsLeftOut: no link is followed, no pipe or socket is read.
func TestWhatIsNoFileIsLeftOut(t *testing.T) {
	const note = "only regular files in /workspace/out are kept, no links or devices: left out "
	for name, c := range map[string]struct {
		make func(path string) error
		n    int
		want string // the end of the note
	}{
		"a link to a file":              {func(path string) error { return os.Symlink("/etc/passwd", path) }, 1, note + "x0"},
		"a link to a folder":            {func(path string) error { return os.Symlink("/etc", path) }, 1, note + "x0"},
		"a link to a file that is kept": {func(path string) error { return os.Symlink("file", path) }, 1, note + "x0"},
		"a pipe":                        {func(path string) error { return unix.Mkfifo(path, 0o600) }, 1, note + "x0"},
		"a socket":                      {func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) }, 1, note + "x0"},
		"as many as are named":          {func(path string) error { return os.Symlink("/", path) }, 5, ""},
		"more":                          {func(path string) error { return os.Symlink("/", path) }, 7, ", and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			out, w := emptyWorkspace(t)
			written(t, out, "file")
			for _, x := range numbered("x%d", c.n) {
				if err := c.make(filepath.Join(out, x)); err != nil {
					t.Fatal(err)
				}
			}
			left := endOfRun(t, keepingStore(t), w)
			if !slices.Equal(listed(left), []string{"file"}) {
				t.Errorf("files %v", listed(left))
			}
			if n := left.Notes; len(n) != 1 || !strings.HasPrefix(n[0], note) || !strings.HasSuffix(n[0], c.want) {
				t.Errorf("notes %q", n)
			} else if strings.Count(n[0], "x") != min(c.n, 5) {
				t.Errorf("not as many names as there may be: %q", n[0])
			}
		})
	}
}

// TestFilesThatCannotBeKeptAreSaid, the first few with the reason. They are new still.
func TestFilesThatCannotBeKeptAreSaid(t *testing.T) {
	notAFolder := filepath.Join(t.TempDir(), "file")
	written(t, filepath.Dir(notAFolder), filepath.Base(notAFolder))
	const note, more = "/workspace/out/f0 could not be kept: ", " in /workspace/out could not be kept"
	for name, c := range map[string]struct {
		dir         string
		files       int
		first, last string
		n           int
	}{
		"no folder for files": {"", 2, note + ErrNoFolder.Error(), "1 more file" + more, 2},
		"another error":       {notAFolder, maxReasons, note + "mkdir " + notAFolder + ": not a directory", "", maxReasons},
		"many errors":         {notAFolder, maxReasons + 2, note + "mkdir " + notAFolder + ": not a directory", "2 more files" + more, maxReasons + 1},
	} {
		t.Run(name, func(t *testing.T) {
			out, w := emptyWorkspace(t)
			names := numbered("f%d", c.files)
			written(t, out, names...)
			left := endOfRun(t, New(Options{Dir: c.dir}), w)
			if n := left.Notes; len(left.Files) > 0 || len(n) != c.n || n[0] != c.first || !strings.HasSuffix(n[len(n)-1], c.last) {
				t.Errorf("files %v, notes %q", listed(left), left.Notes)
			}
			if got := listed(endOfRun(t, keepingStore(t), w)); !slices.Equal(got, names) {
				t.Errorf("the next run keeps %v", got)
			}
		})
	}
}

// TestUnreadableFolderIsSaid, and the other files are kept.
func TestUnreadableFolderIsSaid(t *testing.T) {
	out, w := emptyWorkspace(t)
	written(t, out, "closed/x", "file")
	runs, closed := t.TempDir(), filepath.Join(out, "closed")
	if err := errors.Join(os.Chmod(filepath.Dir(runs), 0o755), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Error(err)
		}
	})
	var left Published
	ostest.Ordinary(t, func() { left = endOfRun(t, New(Options{Dir: runs}), w) },
		runs, filepath.Dir(out), out, filepath.Join(out, "file"), closed)
	want := []string{`a folder in /workspace/out could not be read: "closed": permission denied`}
	if !slices.Equal(listed(left), []string{"file"}) || !slices.Equal(left.Notes, want) {
		t.Errorf("files %v, notes %q", listed(left), left.Notes)
	}
}

// TestFilesThatCouldNotBePublishedAreNew to the next run of a session.
func TestFilesThatCouldNotBePublishedAreNew(t *testing.T) {
	out, w := emptyWorkspace(t)
	written(t, out, "a")
	r := keepingStore(t).NewCollector(t.Context(), newRunID())
	defer r.Discard()
	r.Collect(w)
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if left := r.Finish(); len(left.Files) > 0 || len(left.Notes) != 1 {
		t.Errorf("files %v, notes %q", listed(left), left.Notes)
	}
	for run, want := range [][]string{{"a"}, nil} {
		if got := listed(endOfRun(t, keepingStore(t), w)); !slices.Equal(got, want) {
			t.Errorf("run %d keeps %v, want %v", run, got, want)
		}
	}
}

// TestFileThatVanishesIsNoNote: the code goes on while its folder is read.
func TestFileThatVanishesIsNoNote(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "gone")
	s := scan{leaveOut: func(path string) bool { return os.Remove(filepath.Join(dir, path)) != nil }}
	s.readFolder(opened(t, dir), "", 0)
	if len(s.found) > 0 || len(s.skipped) > 0 || s.unlisted != nil || s.entries != 1 {
		t.Errorf("%+v", s)
	}
}

// TestFileIsTakenAsItWasFound, or not at all: the code may have put something else
// there since.
func TestFileIsTakenAsItWasFound(t *testing.T) {
	outside := t.TempDir()
	written(t, outside, "secret")
	for name, c := range map[string]struct {
		path string
		swap func(path string) error // for what was there
		want error                   // nil: any
	}{
		"gone":                 {"file", func(string) error { return nil }, fs.ErrNotExist},
		"gone with its folder": {"sub/file", func(path string) error { return os.Remove(filepath.Dir(path)) }, fs.ErrNotExist},
		"a link": {"file", func(path string) error {
			return os.Symlink(filepath.Join(outside, "secret"), path)
		}, unix.ELOOP},
		"a link for its folder": {"sub/secret", func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.Symlink(outside, filepath.Dir(path)))
		}, unix.ENOTDIR},
		"a pipe":   {"file", func(path string) error { return unix.Mkfifo(path, 0o600) }, nil},
		"a folder": {"file", func(path string) error { return os.Mkdir(path, 0o700) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			written(t, dir, c.path)
			root := opened(t, dir)
			var s scan
			s.readFolder(root, "", 0)
			path := filepath.Join(dir, c.path)
			if err := errors.Join(os.Remove(path), c.swap(path)); err != nil {
				t.Fatal(err)
			}
			r := keepingStore(t).NewCollector(t.Context(), newRunID())
			defer r.Discard()
			if err := r.fetch(root, s.found[0], func() { t.Error("it counts as published") }); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if left := r.Finish(); len(left.Files) > 0 {
				t.Errorf("kept %v", listed(left))
			}
		})
	}
}

// TestOpenBelowOpensNoPath and no link.
func TestOpenBelowOpensNoPath(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "sub/file", "file")
	for name, to := range map[string]string{"root": "/", "link": "file"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root := opened(t, dir)
	for name, want := range map[string]error{
		"file": nil, "link": unix.ELOOP, "gone": unix.ENOENT, "sub/file": unix.EINVAL,
		"root/etc/passwd": unix.EINVAL, "../../etc": unix.EINVAL, "/etc/passwd": unix.EINVAL,
	} {
		f, err := openBelow(root, name, 0)
		if !errors.Is(err, want) || (err == nil) != (f != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if f != nil {
			f.Close()
		}
	}
}

// TestCollectorLeavesNothingOpen, neither in the workspace nor in the run's folder.
func TestCollectorLeavesNothingOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten, in the end
	out, w := emptyWorkspace(t)
	written(t, out, "a", "sub/b", "sub/sub/c", "other/d")
	s := keepingStore(t)
	r := s.NewCollector(t.Context(), newRunID())
	defer r.Discard()
	r.displays(t, squarePNG(t, 8))
	r.Collect(w)
	left := r.Finish()
	if len(left.Files) != 4 || len(left.Pictures) != 1 {
		t.Fatalf("files %v, notes %q", listed(left), left.Notes)
	}
	s.Close()
	for _, dir := range []string{filepath.Dir(out), s.o.Dir} {
		if names := ostest.OpenFiles(t, dir+"/"); len(names) > 0 {
			t.Errorf("open: %v", names)
		}
	}
}

// TestWhatIsTooLargeIsNotRead: a sparse file of a terabyte costs the code nothing.
func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	out, w := emptyWorkspace(t)
	written(t, out, "small", "z")
	for _, name := range numbered("huge%03d", maxOutFiles-2) {
		if err := os.WriteFile(filepath.Join(out, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(out, name), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	read := bytesRead(t)
	left := endOfRun(t, keepingStore(t), w)
	if got := listed(left); !slices.Equal(got, []string{"small", "z"}) {
		t.Errorf("files %v", got)
	}
	if n := left.Notes; len(n) != maxReasons+1 || !strings.Contains(n[0], "huge000 could not be kept: the files of a run can have 128 MiB in all") {
		t.Errorf("notes %q", n)
	}
	if read = bytesRead(t) - read; read > 1<<30 {
		t.Errorf("%d bytes were read", read)
	}
}

// bytesRead returns how many bytes this process has read.
func bytesRead(t *testing.T) (n int64) {
	t.Helper()
	io, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(io), "rchar: %d", &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhatIsInThePlaceOfOutIsSaid: what was written there is lost.
func TestWhatIsInThePlaceOfOutIsSaid(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file": func(path string) error { return os.WriteFile(path, []byte("a,b"), 0o600) },
		"a link": func(path string) error { return os.Symlink("/workspace/elsewhere", path) },
	} {
		out, w := emptyWorkspace(t)
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
		if err := put(out); err != nil {
			t.Fatal(err)
		}
		left := endOfRun(t, keepingStore(t), w)
		if n := left.Notes; len(n) != 1 || !strings.HasPrefix(n[0], "/workspace/out is not a folder any more, and nothing of it is kept: ") {
			t.Errorf("%s: notes %q", name, n)
		}
	}
}
