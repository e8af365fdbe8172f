package unpack_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

func TestVerifyReadsWhatItsOwnerMayNot(t *testing.T) {
	t.Chdir(t.TempDir()) // the user cannot enter what is above it
	content := "files/0/1"
	var damaged error
	verify := func() {
		damaged = nil
		if err := unpack.Verify(t.Context(), ".", func(_ string, problem error) { damaged = problem }); err != nil {
			t.Fatal(err)
		}
	}
	ostest.Ordinary(t, func() {
		if _, err := unpack.Extract(".", bytes.NewReader(pack(t, withMode(file("f", "x"), 0))), unpack.NewBudget(1<<20, 10)); err != nil {
			t.Fatal(err)
		}
		if verify(); damaged != nil {
			t.Errorf("got %v", damaged)
		}
	}, ".")
	if info, err := os.Stat(content); err != nil || info.Mode() != 0 {
		t.Errorf("afterwards: %v, %v", info, err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(content), 0o700) })
	if err := os.Chmod(filepath.Dir(content), 0); err != nil {
		t.Fatal(err)
	}
	ostest.Ordinary(t, func() {
		if verify(); !errors.Is(damaged, fs.ErrPermission) {
			t.Errorf("in a closed folder: %v", damaged)
		}
	})
}

// TestMergeThatMayNotWriteFails: it leaves nothing out silently.
func TestMergeThatMayNotWriteFails(t *testing.T) {
	here := func(t *testing.T) string { return t.TempDir() }
	for name, c := range map[string]struct {
		disk   func(*testing.T) string
		entry  entry
		change func(root, layer string) error
	}{
		"a directory": {here, dir("d"), func(root, _ string) error { return os.Chmod(root, 0o500) }},
		"a copy":      {otherDisk, file("f", "x"), func(root, _ string) error { return os.Chmod(root, 0o500) }},
		"no list":     {here, file("f", "x"), func(root, _ string) error { return os.Chmod(root, 0o300) }},
		"not replaced": {here, symlink("f", "x"), func(root, _ string) error {
			return errors.Join(os.WriteFile(filepath.Join(root, "f"), nil, 0o600), os.Chmod(root, 0o500))
		}},
		"not its own content": {otherDisk, file("f", "x"), func(_, layer string) error {
			content := filepath.Join(layer, "files/0/1")
			return errors.Join(os.Chown(content, 0, 0), os.Chmod(content, 0))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			layer, at := c.disk(t), t.TempDir()
			root, err := os.OpenRoot(at)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			t.Chdir(layer)
			t.Cleanup(func() { _ = os.Chmod(at, 0o700) })
			b := unpack.NewBudget(1<<20, 10)
			ostest.Ordinary(t, func() {
				if _, err := unpack.Extract(".", bytes.NewReader(pack(t, c.entry)), b); err != nil {
					t.Fatal(err)
				}
			}, at, layer)
			if err := c.change(at, layer); errors.Is(err, fs.ErrPermission) {
				t.Skip("needs root: ", err)
			} else if err != nil {
				t.Fatal(err)
			}
			ostest.Ordinary(t, func() {
				if err := unpack.NewMerger(root, b).Merge(t.Context(), "."); !errors.Is(err, fs.ErrPermission) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestDirectoriesThatCannotGetTheirModeFail(t *testing.T) {
	at, b := t.TempDir(), unpack.NewBudget(1<<20, 10)
	layer := extract(t, b, dir("d"))
	root, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := unpack.NewMerger(root, b)
	if err := m.Merge(t.Context(), layer); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs a directory of another user")
	}
	if err := os.Chmod(filepath.Join(at, "d"), 0o777); err != nil { // anyone may open it
		t.Fatal(err)
	}
	ostest.Ordinary(t, func() {
		if err := m.SetDirModes(t.Context()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v", err)
		}
	}, at)
}
