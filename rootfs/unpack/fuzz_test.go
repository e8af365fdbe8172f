package unpack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/seeds"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// FuzzUnpack unpacks whatever bytes a registry might send as a layer. However
// they go wrong, nothing outside the root changes, and nothing in it is a
// device or has setuid.
func FuzzUnpack(f *testing.F) {
	tb := &testing.T{}
	for _, layer := range [][]entry{
		{dir("a"), file("a/1", "one"), symlink("l", "a"), hardlink("h", "a/1")},
		{symlink("up", "../.."), file("up/x", "y"), hardlink("h2", "../../guard")},
		// Named after what each tries.
		{symlink("d", "/tmp"), dir("d"), file("d/through a link", "y"), whiteout("d/.wh.x")},
		{file("a", ""), file("a/below a file", "y"), dir("a"), symlink("a", "a"), file("a/loop", "y")},
		{hardlink("g", "l"), symlink("l", "../../guard"), hardlink("g", "l"), file("g", "through a hard link")},
		{special("null", tar.TypeChar), special("disk", tar.TypeBlock), special("fifo", tar.TypeFifo), special("odd", 'Z')},
		{withMode(file("setuid", "x"), 0o6755), withMode(dir("sticky"), 0o7777), withMode(dir("closed"), 0), file("closed/x", "y")},
		{dir("."), dir("/"), file("..", "x"), file("a/./../..//b", "x"), whiteout(".wh."), whiteout(".wh..")},
		{whiteout("a/.wh.1"), whiteout(".wh..wh..opq"), file("/abs/../../x", "y")},
	} {
		f.Add(pack(tb, layer...))
	}
	for _, layer := range seeds.Files(f, "images/testdata/python-3.14/layer.tar.gz") {
		r, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			f.Fatal(err)
		}
		tarball, err := io.ReadAll(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(tarball)
	}
	whole := pack(tb, dir("a"), file("a/cut", strings.Repeat("x", 600)))
	f.Add(whole[:1200]) // in the middle of a file
	f.Fuzz(func(t *testing.T, layer []byte) {
		top := t.TempDir()
		guard, at := filepath.Join(top, "guard"), filepath.Join(top, "in", "root")
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(guard, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(at)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		b := unpack.NewBudget(1<<20, 1000)
		m := unpack.NewMerger(root, b)
		_ = unpacktest.Unpack(t, m, b, bytes.NewReader(layer))
		_ = unpacktest.Unpack(t, m, b, bytes.NewReader(layer)) // on top of what it left
		_ = m.SetDirModes(t.Context())
		if kept, err := os.ReadFile(guard); err != nil || string(kept) != "kept" {
			t.Errorf("a file outside the root: %q, %v", kept, err)
		}
		if all, _ := os.ReadDir(top); len(all) != 2 {
			t.Errorf("outside the root: %v", all)
		}
		_ = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
				t.Errorf("%s is a %s", path, d.Type())
			}
			if info, err := d.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return nil
		})
	})
}

// FuzzEntries merges a layer whose own list of entries is damaged: nothing outside the
// root changes.
func FuzzEntries(f *testing.F) {
	for _, layer := range [][]entry{
		{dir("a"), file("a/1", "one"), symlink("l", "../.."), hardlink("h", "a/1")},
		{whiteout("a/.wh.1"), symlink("up", "/"), file("up/guard", "x")},
	} {
		made := f.TempDir()
		if _, err := unpack.Extract(made, bytes.NewReader(pack(f, layer...)), unpack.NewBudget(1<<20, 1000)); err != nil {
			f.Fatal(err)
		}
		list, err := os.ReadFile(filepath.Join(made, "entries"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		top := t.TempDir()
		guard, at, layer := filepath.Join(top, "guard"), filepath.Join(top, "root"), filepath.Join(top, "layer")
		for _, dir := range []string{at, filepath.Join(layer, "files", "0")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range map[string]string{guard: "kept", filepath.Join(layer, "entries"): string(list), filepath.Join(layer, "files/0/1"): "one"} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(at)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		m := unpack.NewMerger(root, unpack.NewBudget(1<<20, 1000))
		_ = m.Merge(t.Context(), layer)
		_ = m.SetDirModes(t.Context())
		_ = unpack.Verify(t.Context(), layer, func(string, error) {})
		if kept, err := os.ReadFile(guard); err != nil || string(kept) != "kept" {
			t.Errorf("a file outside the root: %q, %v", kept, err)
		}
		if all, _ := os.ReadDir(top); len(all) != 3 {
			t.Errorf("outside the root: %v", all)
		}
	})
}
