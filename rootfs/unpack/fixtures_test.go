package unpack_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// The entries that test layers are made of.
type entry = unpacktest.Entry

var (
	file, dir, special = unpacktest.File, unpacktest.Dir, unpacktest.Special
	symlink, hardlink  = unpacktest.Symlink, unpacktest.Hardlink
	pack, listTree     = unpacktest.Tar, unpacktest.List
	withMode           = unpacktest.WithMode
)

func whiteout(name string) entry { return file(name, "") }

// unpackAll unpacks layers into a new directory beside which lies a file that
// nothing may touch.
func unpackAll(t *testing.T, layers ...[]byte) (string, error) {
	t.Helper()
	outside := t.TempDir()
	root := filepath.Join(outside, "root")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rootdir.RemoveAll(root); err != nil {
			t.Error(err)
		}
		left, _ := os.ReadDir(outside)
		got, _ := os.ReadFile(filepath.Join(outside, "secret"))
		if len(left) != 1 || string(got) != "untouched" {
			t.Errorf("something outside of the root was changed: %v, %q", left, got)
		}
	})
	r, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := unpack.NewBudget(1<<20, 1000)
	m := unpack.NewMerger(r, b)
	for _, l := range layers {
		if err := unpacktest.Unpack(t, m, b, bytes.NewReader(l)); err != nil {
			return root, err
		}
	}
	return root, m.SetDirModes(t.Context())
}
