package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// TestCheckMountPoint also sees that nothing is made: the root is that of others too.
func TestCheckMountPoint(t *testing.T) {
	dir := t.TempDir()
	r := &Root{Dir: filepath.Join(dir, "root")}
	for _, name := range []string{"root/etc", "root/srv", "root/new/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "new", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(r.Dir, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../..", filepath.Join(r.Dir, "srv", "up")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target string
		dir    bool
		want   string // in the error
	}{
		{"/new/deep", true, ""},
		{"/data2", true, ""},
		{"/new/other/deeper", true, ""},
		{"/file", false, ""},
		{"/new/file", false, ""},
		{"/srv", true, ""},
		{"/data", true, "/data is a link"},
		{"/data/x", true, "/data is a link"},
		{"/srv/up/x", true, "/srv/up is a link"},
		{"/new/file", true, "/new/file is there"},
		{"/new/file/x", true, "/new/file is there"},
		{"/srv", false, "/srv is there"},
	} {
		err := r.CheckMountPoint(tt.target, tt.dir)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.target, err, tt.want)
		}
	}
	for folder, want := range map[string]int{"": 1, "root": 4, "root/new": 2} {
		if entries, _ := os.ReadDir(filepath.Join(dir, folder)); len(entries) != want {
			t.Errorf("%s has %v", folder, entries)
		}
	}
}

// TestMountPointsAreNoDamage, which an earlier version has made, unless something has
// been put there.
func TestMountPointsAreNoDamage(t *testing.T) {
	reg := newRegistry(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("f", "content"))))
	s := openStore(t)
	root := ensureAll(t, s, ref)[0]
	image, err := s.Find(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root.Dir, "data", "here"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root.Dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := cachedir.WriteJSON(filepath.Join(filepath.Dir(root.Dir), mountPointsName), []string{"data", "data/here", "file"}); err != nil {
		t.Fatal(err)
	}
	if damage, err := s.Verify(ctx, image); err != nil || len(damage) > 0 {
		t.Errorf("damage %q, %v", damage, err)
	}
	for _, name := range []string{"data/here/x", "data/y", "file"} {
		if err := os.WriteFile(filepath.Join(root.Dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 3 {
		t.Errorf("damage %q, %v; want three", damage, err)
	}
}

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
