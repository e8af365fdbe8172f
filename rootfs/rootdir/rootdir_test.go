package rootdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openRoot opens a new directory with the files in it, whose content they name.
func openRoot(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	for name, target := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if link, ok := strings.CutPrefix(target, "-> "); ok {
			err = root.Symlink(link, name)
		} else {
			err = root.WriteFile(name, []byte(target), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCleanStaysInTheRoot(t *testing.T) {
	for name, want := range map[string]string{
		"a/b": "a/b", "/a": "a", "a/../../..": ".", "../x": "x", "/": ".", ".": ".", "a//b/./c/": "a/b/c",
	} {
		if got, err := Clean(name); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", "a\x00b"} {
		if got, err := Clean(name); err == nil {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

func TestWithinTakesWholeNames(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		want      bool
	}{
		{"/a/b", "/a/b", true},
		{"/a/b/c", "/a/b", true},
		{"/a/bc", "/a/b", false},
		{"/a", "/a/b", false},
		{"/", "/", true},
		{"/a", "/", true},
	} {
		if got := Within(tt.name, tt.dir); got != tt.want {
			t.Errorf("%s within %s: %v", tt.name, tt.dir, got)
		}
	}
}

func TestResolveFollowsLinksAsInside(t *testing.T) {
	root := openRoot(t, map[string]string{
		"d/e/f": "content", "up": "-> ../../..", "abs": "-> /d/e", "rel": "-> d", "loop": "-> loop", "file": "-> abs/f", "chain": "-> /file",
		"d/abs": "-> /d/e", "d/rel": "-> e/f",
		"opt/now": "-> /d/e", "bin/p": "-> /opt/now/../e/f", "bin/q": "-> ../opt/now/../rel",
	})
	for name, want := range map[string]string{
		"d/e": "d/e", "/d/../d/e": "d/e", "up/d": "d", "abs": "d/e", "rel/e": "d/e", "up/up/rel": "d", "d/abs": "d/e", "d/abs/../abs": "d/e",
	} {
		if got, err := Resolve(root, name); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"none", "abs/none", "d/e/f", "d/e/f/g"} {
		if got, err := Resolve(root, name); !IsMissing(err) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got, err := Resolve(root, "loop"); err == nil || !strings.Contains(err.Error(), "too many symlinks") {
		t.Errorf("a loop: %q, %v", got, err)
	}
	for _, name := range []string{"/file", "/chain", "/up/file", "/d/rel", "d/abs/f", "bin/p", "/bin/q", "opt/now/../rel"} {
		if got, err := ResolveFile(root, name); err != nil || got != "d/e/f" {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"/d/e/", "/d/e/.", "/d/abs/../e", "/d/e/f/../../e/g/.."} {
		if got, err := ResolveFile(root, name); strings.HasSuffix(name, "g/..") != (err != nil) || err == nil && got != "d/e" {
			t.Errorf("a directory %q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"/none", "/none/f", "/d/e/f/g"} {
		if got, err := ResolveFile(root, name); !IsMissing(err) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got, err := ReadDir(root, "none"); !IsMissing(err) {
		t.Errorf("a list of nothing: %v, %v", got, err)
	}
}

func TestFindOrMakeMakesDirectoriesInside(t *testing.T) {
	root := openRoot(t, map[string]string{"out": "-> ../../new/dir"})
	w := NewResolver(root)
	defer w.Close()
	_, got, err := w.FindOrMake("out/below")
	if err != nil || got != "new/dir/below" {
		t.Fatalf("got %q, %v", got, err)
	}
	if info, err := root.Stat(got); err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("got %v, %v", info, err)
	}
}

// A file of a root may be a hard link to one of a layer, which other images have.
func TestReplaceFileLeavesOtherLinksAlone(t *testing.T) {
	root := openRoot(t, map[string]string{"f": "shared"})
	if err := root.Link("f", "other"); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(root, "f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"f": "new", "other": "shared"} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if all, err := ReadDir(root, "."); err != nil || len(all) != 2 {
		t.Errorf("leftovers: %v, %v", all, err)
	}
}

func TestUnambiguousNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a/b.c": true, "a/b/c": true, "a/…": true, strings.Repeat("n", MaxName): true,
		"": false, ".": false, "..": false, "/a": false, "a/": false, "a//b": false, "./a": false, "a/../b": false, "../a": false,
		"a\\b": false, "c:a": false, "a\nb": false, "a\x00": false, "a\x7f": false, "a\xff": false, "a/b/c/d": false, strings.Repeat("n", MaxName+1): false,
	} {
		if got := Unambiguous(name, 3); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
	if long := strings.Repeat("n/", MaxPath/2) + "n"; Unambiguous(long+"n", MaxPath) || !Unambiguous(long, MaxPath) {
		t.Error("the length of a path is not bounded where it must be")
	}
}
