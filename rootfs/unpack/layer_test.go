package unpack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/rootfs/unpack"
	"golang.org/x/sys/unix"
)

// extract returns the folder of a layer.
func extract(t *testing.T, b *unpack.Budget, entries ...entry) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := unpack.Extract(dir, bytes.NewReader(pack(t, entries...)), b); err != nil {
		t.Fatal(err)
	}
	return dir
}

// merge merges a layer into a new directory.
func merge(t *testing.T, b *unpack.Budget, layer string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := unpack.NewMerger(root, b)
	if err := m.Merge(t.Context(), layer); err != nil {
		return dir, err
	}
	return dir, m.SetDirModes(t.Context())
}

// otherDisk returns a folder to which there are no hard links from the test's other folders.
func otherDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "unpack-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &a), unix.Stat(t.TempDir(), &b)); err != nil || a.Dev == b.Dev {
		t.Skipf("needs two file systems: %v", err)
	}
	return dir
}

func TestExtractReportsWhatItUses(t *testing.T) {
	layer := pack(t,
		entry{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
		dir("d"), file("d/a", strings.Repeat("x", 1000)), file("d/b", "12345"), whiteout(".wh.x"), symlink("l", "d"),
	)
	at := t.TempDir()
	used, err := unpack.Extract(at, bytes.NewReader(layer), unpack.NewBudget(1<<20, 10))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.Stat(filepath.Join(at, "entries"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (unpack.Usage{Bytes: 1005 + list.Size(), Entries: 6}); used != want {
		t.Errorf("got %+v, want %+v", used, want)
	}
}

func TestExtractOverwritesNothing(t *testing.T) {
	for _, name := range []string{"entries", "files/0/1"} {
		at := t.TempDir()
		there := filepath.Join(at, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(there), 0o700), os.WriteFile(there, []byte("old"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack.Extract(at, bytes.NewReader(pack(t, file("a", "new"))), unpack.NewBudget(1<<20, 10)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(there); err != nil || string(got) != "old" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestVerifyNamesWhatIsDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(content string) error // of d/b
		want   error
		text   string
	}{
		"nothing": {func(string) error { return nil }, nil, ""},
		"changed": {func(name string) error { return os.WriteFile(name, []byte("TWO"), 0o600) }, nil, "its content has changed"},
		"longer":  {func(name string) error { return os.WriteFile(name, []byte("two+"), 0o600) }, nil, "its content has changed"},
		"empty":   {func(name string) error { return os.Truncate(name, 0) }, nil, "its content has changed"},
		"missing": {os.Remove, fs.ErrNotExist, ""},
		"a directory": {func(name string) error {
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
		}, unix.EISDIR, ""},
	} {
		t.Run(name, func(t *testing.T) {
			layer := extract(t, unpack.NewBudget(1<<20, 10), dir("d"), file("d/a", "one"), file("d/b", "two"), symlink("l", "d"), hardlink("h", "d/b"), file("c", "three"))
			if err := c.damage(filepath.Join(layer, "files/0/2")); err != nil {
				t.Fatal(err)
			}
			damaged := map[string]error{}
			if err := unpack.Verify(t.Context(), layer, func(name string, problem error) { damaged[name] = problem }); err != nil {
				t.Fatal(err)
			}
			got := damaged["d/b"]
			delete(damaged, "d/b")
			if len(damaged) > 0 {
				t.Errorf("these are whole: %v", damaged)
			}
			if c.text != "" && (got == nil || got.Error() != c.text) || c.text == "" && !errors.Is(got, c.want) {
				t.Errorf("got %v, want %v%s", got, c.want, c.text)
			}
		})
	}
}

func TestVerifyThatCannotTell(t *testing.T) {
	layer := extract(t, unpack.NewBudget(1<<20, 10), file("a", "x"))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	none := func(name string, problem error) { t.Errorf("%s: %v", name, problem) }
	if err := unpack.Verify(cancelled, layer, none); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := unpack.Verify(t.Context(), t.TempDir(), none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a layer: %v", err)
	}
}

func TestMergeRefusesADamagedLayer(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(layer string) error
		want   error
	}{
		"no entries":      {func(layer string) error { return os.Remove(filepath.Join(layer, "entries")) }, fs.ErrNotExist},
		"cut off entries": {func(layer string) error { return os.Truncate(filepath.Join(layer, "entries"), 100) }, io.ErrUnexpectedEOF},
		"no content":      {func(layer string) error { return os.Remove(filepath.Join(layer, "files/0/1")) }, fs.ErrNotExist},
		"a directory as content": {func(layer string) error {
			name := filepath.Join(layer, "files/0/1")
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
		}, unix.EISDIR},
	} {
		t.Run(name, func(t *testing.T) {
			b := unpack.NewBudget(1<<20, 10)
			layer := extract(t, b, file("a", "x"))
			if err := c.damage(layer); err != nil {
				t.Fatal(err)
			}
			if _, err := merge(t, b, layer); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestCopiesCountAsBytes: where a file system has no hard links, each content is there twice.
func TestCopiesCountAsBytes(t *testing.T) {
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, c := range map[string]struct {
		size int
		want string
	}{
		"twice":     {400_000, ""},
		"too large": {600_000, "TOOLCELL_IMAGE_MAX_SIZE"},
	} {
		t.Run(name, func(t *testing.T) {
			layer, b := otherDisk(t), unpack.NewBudget(1<<20, 10)
			f := withMode(file("f", strings.Repeat("x", c.size)), 0o640)
			f.ModTime = when
			if _, err := unpack.Extract(layer, bytes.NewReader(pack(t, f)), b); err != nil {
				t.Fatal(err)
			}
			root, err := merge(t, b, layer)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(root, "f")
			if got, err := os.ReadFile(copied); err != nil || string(got) != f.Body {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if info, err := os.Stat(copied); err != nil || info.Mode() != 0o644 || !info.ModTime().Equal(when) {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

// TestUnpackingLeavesNothingOpen: a layer may have more directories and files than a process
// may have open.
func TestUnpackingLeavesNothingOpen(t *testing.T) {
	layer := pack(t, dir("a/b"), file("a/b/1", "one"), file("c/d/2", "two"), hardlink("h", "a/b/1"), whiteout("a/b/.wh.x"), file("c/d/e/3", "three"))
	for name, disk := range map[string]func(*testing.T) string{
		"links":  func(t *testing.T) string { return t.TempDir() },
		"copies": otherDisk,
	} {
		t.Run(name, func(t *testing.T) {
			run := func() {
				at, b := disk(t), unpack.NewBudget(1<<20, 100)
				if _, err := unpack.Extract(at, bytes.NewReader(layer), b); err != nil {
					t.Fatal(err)
				}
				if _, err := merge(t, b, at); err != nil {
					t.Fatal(err)
				}
				if err := unpack.Verify(t.Context(), at, func(name string, problem error) { t.Errorf("%s: %v", name, problem) }); err != nil {
					t.Fatal(err)
				}
			}
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what was forgotten
			run()                                            // opens what the runtime needs
			before := openFiles(t)
			run()
			if now := openFiles(t); now > before {
				t.Errorf("%d files are open, %d before", now, before)
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
