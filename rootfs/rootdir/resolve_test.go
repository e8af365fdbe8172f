package rootdir

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
)

// A Resolver goes on from where it was, and finds what a new one would.
func TestResolverFindsWhatANewOneDoes(t *testing.T) {
	root := openRoot(t, map[string]string{
		"a/b/c/d/file": "", "a/b/x/file": "", "a/bb/file": "", "b/c/file": "",
		"link": "-> a/b", "a/up": "-> ../b", "a/b/abs": "-> /b",
	})
	w := NewResolver(root)
	defer w.Close()
	dirs := []string{".", "a", "a/b", "a/b/c/d", "a/bb", "b/c", "link", "link/c", "a/up/c", "a/b/abs/c", "a/b/c/../x", "none", "a/none/b", "a/bb/file", "/a/b"}
	for _, from := range dirs {
		for _, to := range dirs {
			_, _, _ = w.Find(from)
			at, got, err := w.Find(to)
			want, wantErr := Resolve(root, to)
			if got != want || (err == nil) != (wantErr == nil) {
				t.Errorf("%q after %q: %q, %v; want %q, %v", to, from, got, err, want, wantErr)
			}
			if err == nil {
				a, errA := at.Stat(".")
				b, errB := root.Stat(want)
				if errA != nil || errB != nil || !os.SameFile(a, b) {
					t.Errorf("%q after %q: another directory: %v, %v", to, from, errA, errB)
				}
			}
		}
	}
}

func TestResolverForgetsWhatGoes(t *testing.T) {
	root := openRoot(t, map[string]string{"a/b/c/file": "", "other/c/new": ""})
	w := NewResolver(root)
	defer w.Close()
	if _, _, err := w.Find("a/b/c"); err != nil {
		t.Fatal(err)
	}
	w.Forget("a/b")
	if err := root.RemoveAll("a/b"); err != nil {
		t.Fatal(err)
	}
	if err := root.Symlink("../other", "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, got, err := w.Find("a/b/c"); err != nil || got != "other/c" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestMadeIsOfTheLastCall: what a failed one made has to be removed as well.
func TestMadeIsOfTheLastCall(t *testing.T) {
	root := openRoot(t, map[string]string{"f": "", "link": "-> /a"})
	w := NewResolver(root)
	defer w.Close()
	for _, tt := range []struct {
		find  func(string) (*os.Root, string, error)
		dir   string
		fails bool
		made  []string
	}{
		{w.FindOrMake, "a/b", false, []string{"a", "a/b"}},
		{w.FindOrMake, "a/b", false, nil},
		{w.FindOrMake, "c/../link/d", false, []string{"c", "a/d"}},
		{w.FindOrMake, "e/../f/g", true, []string{"e"}},
		{w.Find, "a", false, nil},
	} {
		if _, _, err := tt.find(tt.dir); (err != nil) != tt.fails || !slices.Equal(w.Made(), tt.made) {
			t.Errorf("%s: made %q, %v; want %q", tt.dir, w.Made(), err, tt.made)
		}
	}
}

// TestResolverSaysWhatItMayNot, so that nobody takes it for missing.
func TestResolverSaysWhatItMayNot(t *testing.T) {
	root := openRoot(t, map[string]string{"listed/d/f": "", "shut/f": ""})
	w := NewResolver(root)
	defer w.Close()
	modes := map[string]fs.FileMode{"listed": 0o444, "shut": 0, ".": 0o555}
	asOwner(t, root, modes, func() {
		for _, dir := range []string{"listed/d", "shut", "shut/d", "new"} {
			if _, got, err := w.FindOrMake(dir); !errors.Is(err, fs.ErrPermission) || w.Made() != nil {
				t.Errorf("%s: %q, %v, made %q", dir, got, err, w.Made())
			}
		}
	})
}

func TestDirectoriesAreClosedAfterUse(t *testing.T) {
	root := openRoot(t, map[string]string{"a/b/c/f": "", "a/link": "-> b/c/f", "d/e/f": ""})
	w := NewResolver(root)
	for what, use := range map[string]func() error{
		"a list":      func() error { _, err := ReadDir(root, "a"); return err },
		"a directory": func() error { _, err := Resolve(root, "a/b/c"); return err },
		"a file":      func() error { _, err := ResolveFile(root, "a/link"); return err },
		"a resolver": func() error {
			for _, dir := range []string{"a/b/c", "d/e", "."} {
				if _, _, err := w.Find(dir); err != nil {
					return err
				}
			}
			return nil
		},
		"a closed resolver": func() error { _, _, err := w.Find("a/b"); w.Close(); return err },
	} {
		if err := use(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if open := ostest.OpenFiles(t, root.Name()+"/"); len(open) > 0 {
			t.Errorf("%s: still open are %q", what, open)
		}
	}
}

func TestResolverHasLimits(t *testing.T) {
	root := openRoot(t, nil)
	w := NewResolver(root)
	defer w.Close()
	deep := strings.Repeat("d/", MaxDepth)
	if _, _, err := w.FindOrMake(deep); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", MaxName)
	for dir, want := range map[string]string{
		deep + "more":   "directories deep",
		long + "n":      "more than the limit of 255",
		long + "n/more": "more than the limit of 255",
	} {
		if _, got, err := w.FindOrMake(dir); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.20q: %.20q, %v", dir, got, err)
		}
	}
	// Each link leads to the one before twice: the path doubles.
	at := "d"
	for _, name := range []string{"e", "f", "g", "h", "i", "j", "k", "l", "m"} {
		if err := root.Symlink(strings.Repeat(long+"/", 2)+strings.Repeat("../", 2)+at, name); err != nil {
			t.Fatal(err)
		}
		at = name
	}
	if _, _, err := w.FindOrMake(strings.Repeat(long+"/", 17)); err == nil || !strings.Contains(err.Error(), "more than 4095 bytes") {
		t.Errorf("17 long names: %v", err)
	}
	if _, got, err := w.FindOrMake("m"); err != nil || got != "d" {
		t.Errorf("links that lead back: %q, %v", got, err)
	}
	// 40 links with 2,000 names each would be a tenth of a second, for each name of a
	// layer.
	if err := root.Symlink(strings.Repeat("d/../", 800)+"d", "long"); err != nil {
		t.Fatal(err)
	}
	if _, got, err := w.Find("long"); err == nil || !strings.Contains(err.Error(), "more than 1024 names") {
		t.Errorf("a link of many names: %q, %v", got, err)
	}
}
