package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestFindPython(t *testing.T) {
	for name, c := range map[string]struct {
		entries []entry
		env     string
		want    string
	}{
		"system":               {[]entry{program("usr/bin/python3")}, "", "/usr/bin/python3"},
		"local first":          {[]entry{program("usr/bin/python3"), program("usr/local/bin/python3")}, "", "/usr/local/bin/python3"},
		"order of PATH":        {[]entry{program("usr/bin/python3"), program("opt/bin/python3")}, "PATH=/opt/bin:/usr/bin", "/opt/bin/python3"},
		"python3 beats python": {[]entry{program("usr/bin/python"), program("bin/python3")}, "", "/bin/python3"},
		"only python":          {[]entry{program("usr/bin/python")}, "", "/usr/bin/python"},
		"python is 2.7":        {[]entry{symlink("usr/bin/python", "python2.7"), program("usr/bin/python2.7")}, "", ""},
		"only numbered":        {[]entry{program("usr/bin/python3.9"), program("usr/bin/python3.11"), program("usr/bin/python3.14-config")}, "", "/usr/bin/python3.11"},
		"too old":              {[]entry{symlink("usr/bin/python3", "python3.6"), program("usr/bin/python3.6")}, "", ""},
		"absolute symlink":     {[]entry{symlink("usr/bin/python3", "/opt/py/bin/python3.12"), program("opt/py/bin/python3.12")}, "", "/usr/bin/python3"},
		"through directories":  {[]entry{symlink("bin", "usr/bin"), program("usr/bin/python3")}, "PATH=/bin", "/bin/python3"},
		"dangling symlink":     {[]entry{symlink("usr/bin/python3", "/nowhere")}, "", ""},
		"symlink to the host":  {[]entry{symlink("usr/bin/python3", "../../../../../../bin/sh")}, "", ""},
		"symlink loop":         {[]entry{symlink("usr/bin/python3", "python3")}, "", ""},
		"not executable":       {[]entry{file("usr/bin/python3", "")}, "", ""},
		"a directory":          {[]entry{dir("usr/bin/python3")}, "", ""},
		"relative PATH":        {[]entry{program("usr/bin/python3")}, "PATH=usr/bin:.", ""},
		"nothing":              {nil, "", ""},
	} {
		got, err := findPython(unpacktest.Root(t, c.entries...), []string{c.env})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "python:3.14-slim") {
			t.Errorf("%s: no hint in %v", name, err)
		}
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
