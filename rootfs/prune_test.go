package rootfs

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
)

// ensureAll pulls images and ends their use.
func ensureAll(t *testing.T, s *Store, refs ...string) []*Root {
	t.Helper()
	var roots []*Root
	for _, ref := range refs {
		root, err := s.Ensure(ctx, ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	s.Close()
	return roots
}

func layersIn(t *testing.T, s *Store) int {
	t.Helper()
	found, err := os.ReadDir(s.layers.dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestSharedLayersAreStoredAndFetchedOnce(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	a := reg.push(t, "a:1", pythonImage(t, pack(t, file("only-a", "a"))))
	b := reg.push(t, "b:1", pythonImage(t, pack(t, file("only-b", "b"))))
	roots := ensureAll(t, s, a)
	before := reg.blobs.Load()
	roots = append(roots, ensureAll(t, s, b)...)
	if got := reg.blobs.Load() - before; got != 2 {
		t.Errorf("fetched %d blobs, want the configuration and the layer that is new", got)
	}
	if n := layersIn(t, s); n != 3 {
		t.Errorf("%d layers are stored, want 3", n)
	}
	one, err1 := os.Stat(filepath.Join(roots[0].Dir, "usr/bin/python3.12"))
	other, err2 := os.Stat(filepath.Join(roots[1].Dir, "usr/bin/python3.12"))
	if err1 != nil || err2 != nil || !os.SameFile(one, other) {
		t.Errorf("a file of the shared layer is there twice: %v, %v", err1, err2)
	}
}

func TestRemoveFreesWhatNoOtherImageHas(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	big := strings.Repeat("x", 100_000)
	a := reg.push(t, "a:1", pythonImage(t, pack(t, file("big", big))))
	b := reg.push(t, "b:1", pythonImage(t))
	ensureAll(t, s, a, b)
	freed, err := s.Remove(a)
	if err != nil || freed < int64(len(big)) || freed > int64(len(big))+2000 {
		t.Errorf("freed %d, %v", freed, err)
	}
	if n := layersIn(t, s); n != 1 {
		t.Errorf("%d layers are left, want that of the other image", n)
	}
	root, err := s.Ensure(ctx, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(filepath.Join(root.Dir, "usr/bin/python3.12")); err != nil {
		t.Errorf("the other image is not whole: %v", err)
	}
	if _, err := s.Remove(a); err == nil || !strings.Contains(err.Error(), `there is no image "`+a+`" here`) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestRemoveOfOneNameKeepsTheOther(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	img := pythonImage(t)
	a, b := reg.push(t, "py:3", img), reg.push(t, "py:latest", img)
	ensureAll(t, s, a, b)
	if freed, err := s.Remove(a); err != nil || freed != 0 {
		t.Errorf("freed %d, %v", freed, err)
	}
	all, err := s.List()
	if err != nil || len(all) != 1 || !slices.Equal(all[0].Refs, []string{b}) {
		t.Fatalf("got %+v, %v", all, err)
	}
	digest := all[0].Digest
	if _, err := s.Remove(strings.TrimPrefix(digest, "sha256:")[:12]); err != nil {
		t.Errorf("by the beginning of its digest: %v", err)
	}
	nothingKept(t, s)
	if n := layersIn(t, s); n != 0 {
		t.Errorf("%d layers are left", n)
	}
}

func TestImageInUseIsNotRemoved(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	root, err := s.Ensure(ctx, ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(s.cache.Dir, images.Puller{}) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Remove(ref); !errors.Is(err, ErrInUse) {
		t.Errorf("removed: %v", err)
	}
	if removed, _, err := other.Prune(PruneOptions{Unused: 1, Size: 1}); err != nil || len(removed) != 0 {
		t.Errorf("pruned: %v, %v", removed, err)
	}
	if _, err := os.Stat(filepath.Join(root.Dir, "usr/bin/python3.12")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := other.Remove(ref); err != nil {
		t.Errorf("it is not in use any more: %v", err)
	}
}

func TestPrune(t *testing.T) {
	reg := newRegistry(t)
	layer := func(name string) []byte { return pack(t, file(name, strings.Repeat(name, 10_000))) }
	for name, c := range map[string]struct {
		how  PruneOptions
		want []string // that stay
	}{
		"no limit":        {PruneOptions{}, []string{"new", "mid", "old"}},
		"by age":          {PruneOptions{Unused: 36 * time.Hour}, []string{"new", "mid"}},
		"by size":         {PruneOptions{Size: 45_000}, []string{"new"}},
		"by a large size": {PruneOptions{Size: 1 << 30}, []string{"new", "mid", "old"}},
		"by a tiny size":  {PruneOptions{Size: 1}, nil},
		"all that is old": {PruneOptions{Unused: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			for i, tag := range []string{"new", "mid", "old"} {
				ref := reg.push(t, "py:"+tag, pythonImage(t, layer(tag)))
				root := ensureAll(t, s, ref)[0]
				used := time.Now().Add(-time.Duration(i) * 24 * time.Hour)
				if err := os.Chtimes(filepath.Join(filepath.Dir(root.Dir), "image.json"), used, used); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := s.Prune(c.how); err != nil {
				t.Fatal(err)
			}
			all, err := s.List()
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, i := range all {
				left = append(left, strings.TrimPrefix(i.Refs[0], reg.host+"/py:"))
			}
			if !slices.Equal(left, c.want) {
				t.Errorf("%q stay, want %q", left, c.want)
			}
			want := len(c.want) + 1
			if len(c.want) == 0 {
				want = 0
			}
			if n := layersIn(t, s); n != want {
				t.Errorf("%d layers stay, want %d", n, want)
			}
		})
	}
}

func TestPruneRemovesImagesWithoutAName(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	old := ensureAll(t, s, ref)[0]
	reg.push(t, "py:3", pythonImage(t, pack(t, file("newer", "x"))))
	fresh, err := s.Pull(ctx, ref, nil)
	if err != nil || fresh.Dir == old.Dir {
		t.Fatalf("got %+v, %v", fresh, err)
	}
	s.Close()
	removed, _, err := s.Prune(PruneOptions{})
	if err != nil || len(removed) != 1 || removed[0].Digest != old.Digest {
		t.Errorf("removed %+v, %v", removed, err)
	}
	if _, err := os.Stat(fresh.Dir); err != nil {
		t.Error(err)
	}
}

func TestPruneRemovesRootsOfAnotherFormat(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	root := ensureAll(t, s, reg.push(t, "py:3", pythonImage(t)))[0]
	old := filepath.Dir(root.Dir)
	if err := os.WriteFile(filepath.Join(old, "image.json"), []byte(`{"format":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Prune(PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestLayersOfAPullThatGoesOnAreKept(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	img := pythonImage(t, pack(t, file("second", "layer")))
	ref := reg.push(t, "py:3", img)
	layers, _ := img.Layers()
	last, _ := layers[1].Digest()
	asked, release := make(chan struct{}), make(chan struct{})
	reg.onBlob(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, last.String()) {
			close(asked)
			<-release
		}
		return false
	})
	ended := make(chan error)
	go func() {
		_, err := s.Ensure(ctx, ref, nil)
		ended <- err
	}()
	<-asked
	if _, _, err := s.Prune(PruneOptions{Unused: 1}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the pull failed: %v", err)
	}
}

func TestInterruptedPullKeepsItsCompleteLayers(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	img := pythonImage(t, pack(t, file("second", "layer")))
	ref := reg.push(t, "py:3", img)
	layers, _ := img.Layers()
	last, _ := layers[1].Digest()
	reg.onBlob(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, last.String()) {
			// Until the first layer is there.
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if whole, _ := state.Match(s.layers.dir, "[^.]*"); len(whole) > 0 {
					break
				}
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	s.puller.Backoff = time.Millisecond
	if _, err := s.Ensure(ctx, ref, nil); !errors.Is(err, images.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if n := layersIn(t, s); n != 1 {
		t.Errorf("%d layers are kept, want the one that is complete", n)
	}
	before := reg.blobs.Load()
	reg.onBlob(func(http.ResponseWriter, *http.Request) bool { return false })
	if _, err := s.Ensure(ctx, ref, nil); err != nil {
		t.Fatal(err)
	}
	if got := reg.blobs.Load() - before; got != 2 {
		t.Errorf("the second pull fetched %d blobs, want the configuration and one layer", got)
	}
}

func TestPolicy(t *testing.T) {
	reg := newRegistry(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	never := openStore(t)
	never.Policy = PullNever
	if _, err := never.Ensure(ctx, ref, nil); !errors.Is(err, ErrNotHere) || !strings.Contains(err.Error(), "toolcell images pull "+ref) {
		t.Errorf("never, not here: %v", err)
	}
	if _, err := never.Pull(ctx, ref, nil); err != nil {
		t.Fatalf("never, but asked for: %v", err)
	}
	before := reg.all.Load()
	if _, err := never.Ensure(ctx, ref, nil); err != nil || reg.all.Load() != before {
		t.Errorf("never, here: %d requests, %v", reg.all.Load()-before, err)
	}

	reg.push(t, "py:3", pythonImage(t, pack(t, file("newer", "x"))))
	always, err := Open(never.cache.Dir, images.Puller{})
	if err != nil {
		t.Fatal(err)
	}
	always.Policy = PullAlways
	root, err := always.Ensure(ctx, ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root.Dir, "newer")); err != nil {
		t.Errorf("always: the old image was taken: %v", err)
	}
	before = reg.all.Load()
	if _, err := always.Ensure(ctx, ref, nil); err != nil || reg.all.Load() != before {
		t.Errorf("always, a second time in one process: %d requests, %v", reg.all.Load()-before, err)
	}
}

func TestDue(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	if s.RecheckDue(ref) {
		t.Error("due before it was ever pulled")
	}
	root := ensureAll(t, s, ref)[0]
	if s.RecheckDue(ref) {
		t.Error("due at once")
	}
	r, err := images.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	age := func(r images.Reference) {
		long := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(s.tags.file(r), long, long); err != nil {
			t.Fatal(err)
		}
	}
	age(r)
	s.Policy = PullNever
	if s.RecheckDue(ref) {
		t.Error("due, though pulling is switched off")
	}
	s.Policy = PullMissing
	if !s.RecheckDue(ref) {
		t.Error("not due after two hours")
	}
	if s.RecheckDue(ref) {
		t.Error("due again at once")
	}
	pinned := reg.host + "/py@" + root.Digest
	ensureAll(t, s, pinned)
	if r, err = images.Parse(pinned); err != nil {
		t.Fatal(err)
	}
	age(r)
	if s.RecheckDue(pinned) {
		t.Error("a digest is due")
	}
}

// TestPruneKeepsTheLayersOfAStoreWhoseNameIsAPattern, which would match another folder.
func TestPruneKeepsTheLayersOfAStoreWhoseNameIsAPattern(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store [1]"), images.Puller{})
	if err != nil {
		t.Fatal(err)
	}
	ensureAll(t, s, newRegistry(t).push(t, "py:3", pythonImage(t)))
	s.Close()
	before, err := state.Match(s.layers.dir, "sha256-*")
	if err != nil || len(before) == 0 {
		t.Fatal(before, err)
	}
	if _, _, err := s.Prune(PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	if after, err := state.Match(s.layers.dir, "sha256-*"); err != nil || !slices.Equal(after, before) {
		t.Errorf("of %v are left %v, %v", before, after, err)
	}
}
