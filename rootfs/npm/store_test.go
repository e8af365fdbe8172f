package npm

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// tree lists what is in a folder, with the modes of files.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		name, _ := filepath.Rel(dir, path)
		names = append(names, name+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestLayerHasThePackagesOfALock(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	inner := with(x.add("b", "2.0.0", pack(t, tarEntry{kind: tar.TypeXGlobalHeader}, tarEntry{name: "./b/", kind: tar.TypeDir}, tarEntry{name: "./b/package.json", content: `{"name":"b","version":"v2.0.0+x"}`})), map[string]any{"name": "b"})
	lock := lockOf(t, map[string]map[string]any{
		"node_modules/@s/a":                    x.add("@s/a", "1.0.0", packageOf(t, "@s/a", "1.0.0", tarEntry{name: "package/node_modules/", kind: tar.TypeDir}, tarEntry{name: "package/./lib/././x.js", mode: 0o6600, content: "x"}, tarEntry{name: "package/lib/x.js", content: "x"})),
		"node_modules/@s/a/node_modules/alias": inner,
	})
	var told []packages.Progress
	layer, err := s.Ensure(t.Context(), x.request(lock), func(p packages.Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	const r, exec = " -rw-r--r--", " -rwxr-xr-x"
	want := []string{
		"node_modules/@s/a/cli.js" + exec, "node_modules/@s/a/lib/x.js" + r,
		"node_modules/@s/a/node_modules/alias/package.json" + r, "node_modules/@s/a/package.json" + r,
	}
	if got := tree(t, layer.Dir); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if layer.Packages != 2 || layer.Bytes == 0 || !slices.Equal(layer.Wanted, []string{"@s/a 1.0.0"}) {
		t.Errorf("got %+v", layer)
	}
	if last := told[len(told)-1]; last != (packages.Progress{Done: 2, Total: 2, Text: "fetching 2 packages"}) {
		t.Errorf("progress %v", told)
	}
	if left := tree(t, filepath.Dir(layer.Dir)); len(left) != len(want)+1 {
		t.Errorf("beside the record and its files: %q", left)
	}
	asked := x.count()
	again, err := openStore(t, s.cache.Dir).Ensure(t.Context(), x.request(lock), nil)
	if err != nil || again.ID != layer.ID || x.count() != asked {
		t.Errorf("again: %v, %d requests", err, x.count()-asked)
	}
}

// TestHostileTarballs leave neither a layer nor anything outside of the folder.
func TestHostileTarballs(t *testing.T) {
	for what, c := range map[string]struct {
		entries []tarEntry
		want    string
	}{
		"up":                 {[]tarEntry{{name: "package/../../../../evil"}}, "may not have such a name"},
		"up behind a dot":    {[]tarEntry{{name: "package/./.././../evil"}}, "may not have such a name"},
		"absolute":           {[]tarEntry{{name: "/package/evil"}}, "may not have such a name"},
		"absolute and a dot": {[]tarEntry{{name: ".//package/evil"}}, "may not have such a name"},
		"twins but for dots": {[]tarEntry{{name: "package/./cli.js", content: "other"}}, "file exists"},
		"a backslash":        {[]tarEntry{{name: `package\..\evil`}}, "may not have such a name"},
		"deep":               {[]tarEntry{{name: "package/" + strings.Repeat("d/", maxDepth) + "f"}}, "may not have such a name"},
		"another folder":     {[]tarEntry{{name: "evil/f"}}, `is not in the folder "package"`},
		"a symlink":          {[]tarEntry{{name: "package/l", content: "/etc/passwd", kind: tar.TypeSymlink}}, "it is a link"},
		"a hard link":        {[]tarEntry{{name: "package/l", content: "package/cli.js", kind: tar.TypeLink}}, "it is a link"},
		"a device":           {[]tarEntry{{name: "package/null", kind: tar.TypeChar}}, "neither a file nor a folder"},
		"a pipe":             {[]tarEntry{{name: "package/pipe", kind: tar.TypeFifo}}, "neither a file nor a folder"},
		"twins":              {[]tarEntry{{name: "package/cli.js", content: "other"}}, "file exists"},
		"a file as a folder": {[]tarEntry{{name: "package/cli.js/f"}}, "is a file"},
		"too large":          {[]tarEntry{{name: "package/zeros", content: strings.Repeat("\x00", 1<<20)}}, "more than 1 MiB unpacked"},
		"another package":    {[]tarEntry{{name: "package/node_modules/b/evil.js"}}, `in the folder of another package, "node_modules/a/node_modules/b"`},
	} {
		t.Run(what, func(t *testing.T) {
			x, s := newRegistry(t), newStore(t)
			lock := lockOf(t, map[string]map[string]any{
				"node_modules/a":                x.add("a", "1.0.0", packageOf(t, "a", "1.0.0", c.entries...)),
				"node_modules/a/node_modules/b": x.add("b", "1.0.0", packageOf(t, "b", "1.0.0")),
			})
			_, err := s.Ensure(t.Context(), x.request(lock), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "a 1.0.0: ") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if left := tree(t, filepath.Dir(s.cache.Dir)); len(left) > 3 || slices.ContainsFunc(left, func(name string) bool { return !strings.Contains(name, "/locks/") }) {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestFilesAreBounded: folders that no entry names count too.
func TestFilesAreBounded(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	var entries []tarEntry
	for n := range 10 {
		entries = append(entries, tarEntry{name: fmt.Sprintf("package/%d/%sf", n, strings.Repeat("d/", 79))})
	}
	tarball := pack(t, entries...)
	r := x.oneOf(t, "a", tarball)
	tree, err := ParseLock(t.Context(), r.Lock, r.Source, linux)
	if err != nil {
		t.Fatal(err)
	}
	b := newBudget(1 << 20)
	b.files.Store(500)
	root, err := os.OpenRoot(s.cache.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = tree.unpack(t.Context(), root, tree.packages[0], strings.NewReader(string(tarball)), b)
	if wrong, ok := errors.AsType[*packages.RequestError](err); !ok || !strings.Contains(wrong.Error(), "more than 200000 files") {
		t.Errorf("got %v", err)
	}
	all := 0
	_ = filepath.WalkDir(s.cache.Dir, func(string, fs.DirEntry, error) error { all++; return nil })
	if all > 500+maxDepth+20 { // one name may go over it
		t.Errorf("%d files and folders", all)
	}
}

func TestWhatIsNotTheLocksTarballIsRefused(t *testing.T) {
	good := packageOf(t, "a", "1.0.0")
	for what, c := range map[string]struct {
		tarball []byte // in the lock
		served  []byte
		want    string
	}{
		"another tarball": {good, packageOf(t, "a", "1.0.0", tarEntry{name: "package/evil.js"}), "its SHA-512 is"},
		"half of it":      {good, good[:len(good)/2], "its SHA-512 is"},
		"a long one":      {good, append(slices.Clone(good), make([]byte, 1<<20)...), "more than 1048576 bytes"},
		"no tarball":      {[]byte("evil"), nil, "not compressed with gzip"},
		"another package": {packageOf(t, "evil", "1.0.0"), nil, `its package.json is of "evil" "1.0.0"`},
		"another version": {packageOf(t, "a", "1.0.1"), nil, `its package.json is of "a" "1.0.1"`},
		"no package.json": {pack(t, tarEntry{name: "package/f"}), nil, "has no package.json"},
		"half a tar":      {pack(t, tarEntry{name: "package/f"})[:40], nil, "unexpected EOF"},
	} {
		x, s := newRegistry(t), newStore(t)
		r := x.oneOf(t, "a", c.tarball)
		if c.served != nil {
			x.add("a", "1.0.0", c.served)
		}
		_, err := s.Ensure(t.Context(), r, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || (c.served != nil) != errors.Is(err, fetch.ErrContent) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
		if all, err := s.List(); len(all) > 0 || err != nil {
			t.Errorf("%s: there is a layer: %v, %v", what, all, err)
		}
	}
}

func TestLimitsOfARequest(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	lock := lockOf(t, map[string]map[string]any{
		"node_modules/a": x.add("a", "1.0.0", packageOf(t, "a", "1.0.0")), "node_modules/b": x.add("b", "1.0.0", packageOf(t, "b", "1.0.0")),
	})
	check := func(what, want string, change func(*Request)) {
		t.Helper()
		r := x.request(lock)
		change(&r)
		_, err := s.Ensure(t.Context(), r, nil)
		if _, ok := errors.AsType[*packages.RequestError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	denied := func(name, _ string) error {
		if name == "b" {
			return errors.New("b is denied")
		}
		return nil
	}
	for range 2 { // also once the layer is there
		check("too many", "needs 2 packages with all that they need; the most is 1", func(r *Request) { r.MaxCount = 1 })
		check("one is denied", "b is denied", func(r *Request) { r.Check = denied })
		check("no check", "nothing checks", func(r *Request) { r.Check = nil })
		check("another registry", "not with https", func(r *Request) { r.Registry = "http://127.0.0.1:1" })
		if _, err := s.Ensure(t.Context(), x.request(lock), nil); err != nil {
			t.Fatal(err)
		}
	}
	check("too large", "more than 10 bytes unpacked", func(r *Request) { r.MaxBytes = 10 })
}

func TestOfflineNothingIsFetched(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	r := x.oneOf(t, "a", packageOf(t, "a", "1.0.0"))
	r.Offline = true
	if _, err := s.Ensure(t.Context(), r, nil); !errors.Is(err, packages.ErrOffline) || x.count() > 0 {
		t.Errorf("got %v, %d requests", err, x.count())
	}
	r.Offline = false
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	x.Close()
	r.Offline = true
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Errorf("once it is there: %v", err)
	}
}

func TestTimeIsBounded(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	x.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	r := x.oneOf(t, "a", packageOf(t, "a", "1.0.0"))
	r.MaxTime = 10 * time.Millisecond
	if _, err := s.Ensure(t.Context(), r, nil); err == nil || err.Error() != "getting the server's packages: it took longer than 10ms" {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentRequestsShareTheWork(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	r := x.oneOf(t, "a", packageOf(t, "a", "1.0.0"))
	var all sync.WaitGroup
	for range 4 {
		for _, of := range []*Store{s, openStore(t, s.cache.Dir)} {
			all.Go(func() {
				defer contain.Recover("a test", func(err error) { t.Error(err) })
				if _, err := of.Ensure(t.Context(), r, nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if x.count() != 1 {
		t.Errorf("%d requests", x.count())
	}
}

func TestPruneRemovesWhatIsOldAndNotInUse(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	used, err := s.Ensure(t.Context(), x.oneOf(t, "used", packageOf(t, "used", "1.0.0")), nil)
	if err != nil {
		t.Fatal(err)
	}
	old, err := s.Ensure(t.Context(), x.oneOf(t, "old", packageOf(t, "old", "1.0.0")), nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := s.layers.path("sha256-" + strings.Repeat("0", 64))
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, l := range []*Layer{used, old} {
		if err := os.Chtimes(s.layers.record(l.ID), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(old.ID); !errors.Is(err, cachedir.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	s.Release(old.ID)
	removed, err := s.Prune(time.Minute)
	if err != nil || len(removed) != 1 || removed[0].ID != old.ID || removed[0].Bytes == 0 || removed[0].Wanted[0] != "old 1.0.0" {
		t.Errorf("removed %v, %v", removed, err)
	}
	if all, err := s.List(); err != nil || len(all) != 1 || all[0].ID != used.ID {
		t.Errorf("left %v, %v", all, err)
	}
	if _, err := os.Lstat(broken); err == nil {
		t.Error("what is not complete stays")
	}
	if removed, err := s.Prune(2 * time.Hour); err != nil || len(removed) > 0 {
		t.Errorf("of new ones: %v, %v", removed, err)
	}
	for _, id := range []string{"", "..", "sha256-../../x"} {
		if err := s.Remove(id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
}

func TestFoldersOfOthersAreNotUsed(t *testing.T) {
	x, s := newRegistry(t), newStore(t)
	if err := os.Chmod(filepath.Join(s.cache.Dir, "layers"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := s.Ensure(t.Context(), x.oneOf(t, "a", packageOf(t, "a", "1.0.0")), nil)
	if _, ok := errors.AsType[*cachedir.UntrustedError](err); !ok {
		t.Errorf("got %v", err)
	}
}
