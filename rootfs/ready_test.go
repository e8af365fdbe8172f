package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestMountPointsAreRealDirectories(t *testing.T) {
	readOnly := dir("run")
	readOnly.Mode = 0o555
	for name, entries := range map[string][]entry{
		"empty image":         nil,
		"symlinks":            {symlink("tmp", "/var/tmp"), symlink("run", "../../etc"), symlink("proc", "nowhere"), symlink("workspace", "/")},
		"files":               {file("tmp", "x"), file("dev", "x"), dir("run"), file("run/toolcell", "x")},
		"nested symlink":      {dir("run"), symlink("run/toolcell", "../usr")},
		"read-only parent":    {readOnly},
		"directories":         {dir("tmp"), file("tmp/x", "y"), dir("run/toolcell")},
		"hard-linked symlink": {symlink("a", "b"), hardlink("tmp", "a")},
	} {
		root := unpacktest.Root(t, entries...)
		if err := makeMountPoints(root); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, m := range mountPoints {
			if info, err := os.Lstat(filepath.Join(root.Name(), m)); err != nil || info.Mode().Type() != fs.ModeDir {
				t.Errorf("%s: %s is %v, %v", name, m, info, err)
			}
		}
	}
}
