package python

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// FuzzBytecode reads what an image may write instead of bytecode. It ends up in places
// for bytecode, or nowhere.
func FuzzBytecode(f *testing.F) {
	f.Add(frame("/lib/__pycache__/m.pyc", bytecode))
	f.Add(frame("/up/__pycache__/m.pyc", bytecode) + frame("/lib2/__pycache__/../x.pyc", bytecode))
	f.Add(frame("/l/__pycache__/m.pyc", bytecode) + frame("/lib/m.py", bytecode))
	f.Add("\x00\x00\x00\x05\xff\xff\xff\xffabc")
	f.Fuzz(func(t *testing.T, stream string) {
		root := unpacktest.Root(t,
			file("lib/m.py", "source"), symlink("up", "../../.."), symlink("lib2", "lib"),
			dir("l"), symlink("l/__pycache__", "/lib"), file("f/__pycache__", "a file"),
		)
		above := filepath.Dir(root.Name())
		before, err := os.ReadDir(above)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = CompileModules(t.Context(), "/usr/bin/python3", root, 10, writes(stream))
		added := 0
		err = filepath.WalkDir(root.Name(), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pyc") {
				return err
			}
			added++
			if filepath.Base(filepath.Dir(path)) != "__pycache__" {
				t.Errorf("a file at %s", path)
			}
			return os.Remove(path)
		})
		if err != nil || added > 10 {
			t.Errorf("%d files, %v", added, err)
		}
		after, err := os.ReadDir(above)
		if err != nil || len(after) != len(before) {
			t.Errorf("outside the root: was %v, is %v, %v", before, after, err)
		}
		if source, err := root.ReadFile("lib/m.py"); err != nil || string(source) != "source" {
			t.Errorf("a source was changed: %q, %v", source, err)
		}
	})
}

// FuzzFind looks for Python as any environment of an image says.
func FuzzFind(f *testing.F) {
	f.Add("/usr/bin:/opt/bin:relative:", "python3")
	f.Add("/up/usr/bin:/loop:/usr/bin/python3", "python3.14")
	f.Fuzz(func(t *testing.T, path, exe string) {
		if exe == "" || exe == "." || exe == ".." || strings.ContainsAny(exe, "/\x00") || len(exe) > 255 {
			return
		}
		root := unpacktest.Root(t, program("usr/bin/"+exe), symlink("opt/bin", "../usr/bin"), symlink("up", "../.."), symlink("loop", "loop"))
		found, err := Find(t.Context(), root, []string{"PATH=" + path})
		if err != nil {
			return
		}
		real, err := rootdir.ResolveFile(root, found)
		if err != nil || real != "usr/bin/"+exe || !filepath.IsAbs(found) {
			t.Errorf("%q in %q: found %q, which is %q, %v", exe, path, found, real, err)
		}
	})
}
