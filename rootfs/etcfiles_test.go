package rootfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestLookupFilesAreAddedWhereAnImageHasNone(t *testing.T) {
	closed := dir("etc")
	closed.Mode = 0o555
	for name, c := range map[string]struct {
		entries []entry
		ours    []string
	}{
		"nothing":            {nil, []string{"etc/hosts", "etc/resolv.conf"}},
		"empty files":        {[]entry{dir("etc"), file("etc/hosts", ""), file("etc/resolv.conf", "")}, []string{"etc/hosts", "etc/resolv.conf"}},
		"its own hosts":      {[]entry{dir("etc"), file("etc/hosts", "10.0.0.1 db")}, []string{"etc/resolv.conf"}},
		"read-only":          {[]entry{closed}, []string{"etc/hosts", "etc/resolv.conf"}},
		"a symlink":          {[]entry{dir("etc"), symlink("etc/resolv.conf", "/run/resolv.conf")}, []string{"etc/hosts"}},
		"a symlink outside":  {[]entry{dir("etc"), symlink("etc/hosts", "../../../outside")}, []string{"etc/resolv.conf"}},
		"directories":        {[]entry{dir("etc/hosts"), dir("etc/resolv.conf")}, nil},
		"/etc is a symlink":  {[]entry{symlink("etc", "../../outside")}, nil},
		"/etc is a file":     {[]entry{file("etc", "")}, nil},
		"a hard link of two": {[]entry{dir("etc"), file("empty", ""), hardlink("etc/hosts", "empty")}, []string{"etc/hosts", "etc/resolv.conf"}},
	} {
		root := unpacktest.Root(t, c.entries...)
		if err := addEtcFiles(root); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ours []string
		for _, file := range slices.Sorted(maps.Keys(etcFiles)) {
			if got, err := root.ReadFile(file); err == nil && string(got) == etcFiles[file] {
				ours = append(ours, file)
			}
		}
		if !slices.Equal(ours, c.ours) {
			t.Errorf("%s: ours are %q, want %q", name, ours, c.ours)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(root.Name()), "outside")); err == nil {
			t.Errorf("%s: written outside", name)
		}
		if other, err := root.ReadFile("empty"); err == nil && len(other) > 0 {
			t.Errorf("%s: another name of the file has %q", name, other)
		}
	}
}

// TestLookupFilesAreNoDamage: verification knows them.
func TestLookupFilesAreNoDamage(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("etc/hosts", ""))))
	root := ensureAll(t, s, ref)[0]
	got, err := os.ReadFile(filepath.Join(root.Dir, "etc/hosts"))
	if err != nil || !strings.Contains(string(got), "localhost") {
		t.Errorf("/etc/hosts is %q, %v", got, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if damage, err := s.Verify(ctx, &list[0]); err != nil || len(damage) > 0 {
		t.Errorf("damage %q, %v", damage, err)
	}
}
