package rootfs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack unpacks whatever bytes a registry might send as a layer. However
// they go wrong, nothing outside the root changes, and nothing in it is a
// device or has setuid.
func FuzzUnpack(f *testing.F) {
	tb := &testing.T{}
	for _, layer := range [][]entry{
		{dir("a"), file("a/1", "one"), symlink("l", "a"), hardlink("h", "a/1")},
		{symlink("up", "../.."), file("up/x", "y"), hardlink("h2", "../../guard")},
		{whiteout("a/.wh.1"), whiteout(".wh..wh..opq"), file("/abs/../../x", "y")},
	} {
		f.Add(pack(tb, layer...))
	}
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
		u := newUnpacker(root, 1<<20, 1000)
		_ = u.unpack(bytes.NewReader(layer))
		_ = u.unpack(bytes.NewReader(layer)) // on top of what it left
		_ = u.finish()
		if b, err := os.ReadFile(guard); err != nil || string(b) != "kept" {
			t.Errorf("a file outside the root: %q, %v", b, err)
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
