package artifacts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/internal/ostest"
)

// newRun begins a run of a store that has its folder in an empty one.
func newRun(t *testing.T) *Collector {
	t.Helper()
	run := storeOf(t, imaging.Limits{}).NewCollector(t.Context(), newRunID())
	t.Cleanup(run.Discard)
	return run
}

// addStream adds a stream that is said to have so many bytes, and returns where its URI
// will be.
func (c *Collector) addStream(t *testing.T, name string, size int64) (uri *string) {
	t.Helper()
	f, err := c.Create()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	uri = new(string)
	c.AddStream(f.Name(), name, size, func(at string) { *uri = at })
	return uri
}

func (c *Collector) keeps(t *testing.T, name, body string) {
	t.Helper()
	if _, err := c.keep(keptFile{name: name}, strings.NewReader(body)); err != nil {
		t.Fatal(err)
	}
}

// entries returns the names in a folder.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestFilesOfARunAreBoundedTogether: streams and files, of which the last does not fit.
func TestFilesOfARunAreBoundedTogether(t *testing.T) {
	run := newRun(t)
	run.addStream(t, "stdout.txt", maxKept-4)
	run.keeps(t, "fits.txt", "123")
	const want = "the files of a run can have 128 MiB in all"
	if _, err := run.keep(keptFile{name: "large.txt"}, strings.NewReader("12")); err == nil || err.Error() != want {
		t.Errorf("one byte too many: %v", err)
	}
	run.displays(t, squarePNG(t, 8))
	run.keeps(t, "last.txt", "1")
	left := run.Finish()
	if got := entries(t, left.Folder); !slices.Equal(got, []string{"fits.txt", "last.txt", "stdout.txt"}) {
		t.Errorf("the folder has %q", got)
	}
	note := `picture "picture.png" could not be kept as a file: ` + want
	if len(left.Pictures) != 1 || left.Pictures[0].URI != "" || !slices.Equal(left.Notes, []string{note}) {
		t.Errorf("%d pictures, notes %q", len(left.Pictures), left.Notes)
	}
}

// TestNamesThatTheCodeChoseTakePrecedence over those of streams, which are listed last.
func TestNamesThatTheCodeChoseTakePrecedence(t *testing.T) {
	run := newRun(t)
	stream := run.addStream(t, "stdout.txt", 0)
	run.keeps(t, "stdout.txt", "mine")
	run.keeps(t, "a.txt", "")
	left := run.Finish()
	var names []string
	for _, f := range left.Files {
		names = append(names, f.Name)
	}
	if want := []string{"stdout.txt", "a.txt", "stdout-2.txt"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	if want := fileURI(run.id, "stdout-2.txt"); *stream != want {
		t.Errorf("the stream is %q, want %q", *stream, want)
	}
	if c, err := run.store.Read(fileURI(run.id, "stdout.txt")); err != nil || c.Text != "mine" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFilesThatCannotBePublished become one note: here someone has tidied up.
func TestFilesThatCannotBePublished(t *testing.T) {
	for name, remove := range map[string]func(run *Collector) string{
		"the folder": func(run *Collector) string { return run.dir },
		"a file":     func(run *Collector) string { return filepath.Join(run.dir, ".part-1") },
	} {
		run := newRun(t)
		run.keeps(t, "a.txt", "a")
		if err := os.RemoveAll(remove(run)); err != nil {
			t.Fatal(err)
		}
		left := run.Finish()
		if len(left.Files) > 0 || left.Folder != "" || len(left.Notes) != 1 ||
			!strings.HasPrefix(left.Notes[0], "the files of this run could not be kept: ") {
			t.Errorf("%s: %+v", name, left)
		}
		if run.Discard(); len(entries(t, run.store.o.Dir)) > 0 {
			t.Errorf("%s: something stays", name)
		}
	}
}

// TestFolderThatCannotBeMade keeps no file, neither there nor in the server's own folder.
func TestFolderThatCannotBeMade(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	parent, err := filepath.Abs("file")
	if err != nil {
		t.Fatal(err)
	}
	run := New(Options{Dir: filepath.Join(parent, "runs")}).NewCollector(t.Context(), newRunID())
	defer run.Discard()
	want := "mkdir " + parent + ": not a directory"
	if _, err := run.keep(keptFile{name: "a.txt"}, strings.NewReader("a")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if left := run.Finish(); left.Folder != "" || len(left.Files) > 0 {
		t.Errorf("%+v", left)
	}
	if got := entries(t, "."); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the working folder has %q", got)
	}
}

// TestFullDiskIsSaidOfAFile. A folder with nothing but parts of files is not published.
func TestFullDiskIsSaidOfAFile(t *testing.T) {
	for _, full := range []unix.Errno{unix.ENOSPC, unix.EDQUOT} {
		run := newRun(t)
		_, err := run.keep(keptFile{name: "a.txt"}, iotest.ErrReader(&os.PathError{Op: "write", Path: ".part-1", Err: full}))
		if !isFull(err) || !strings.HasPrefix(err.Error(), "the disk with "+run.store.o.Dir) {
			t.Error(err)
		}
		if left := run.Finish(); left.Folder != "" {
			t.Errorf("%s has no file", left.Folder)
		}
		if run.Discard(); len(entries(t, run.store.o.Dir)) > 0 {
			t.Error("something stays")
		}
	}
}

// TestNoFileStaysOpen: a server keeps and reads files for months.
func TestNoFileStaysOpen(t *testing.T) {
	run := newRun(t)
	run.SetPrivate([]string{"mail"})
	run.keeps(t, "a.txt", "a")
	workspace, err := os.Open(run.store.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	run.NoteLost(NewWorkspace(workspace, nil))
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	uri := run.Finish().Files[0].URI
	if _, err := run.store.Read(uri); err != nil {
		t.Fatal(err)
	}
	run.store.Private(uri)
	if open := ostest.OpenFiles(t, run.store.o.Dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}
