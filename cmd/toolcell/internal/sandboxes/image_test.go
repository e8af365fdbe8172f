package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

const ref = "registry.invalid/python:3"

// fakeStore has roots and errors by reference, and records what it was asked for.
type fakeStore struct {
	roots map[string]*rootfs.Root
	errs  map[string]error
	due   bool
	asked []string
}

func (s *fakeStore) Ensure(_ context.Context, ref string, progress func(rootfs.Progress)) (*rootfs.Root, error) {
	s.asked = append(s.asked, ref)
	progress(rootfs.Progress{Done: 1, Total: 2, Text: "pulling"})
	return s.roots[ref], s.errs[ref]
}

func (s *fakeStore) Cached(_ context.Context, ref string) *rootfs.Root { return s.roots[ref] }
func (s *fakeStore) RecheckDue(string) bool                            { return s.due }

// newImages returns a source of the image ref, whose store has that and the
// host's Python.
func newImages(t *testing.T) (*Images, *fakeStore) {
	t.Helper()
	store := &fakeStore{roots: map[string]*rootfs.Root{}, errs: map[string]error{}}
	for name, digest := range map[string]string{ref: "sha256:1", "host": "host"} {
		dir := filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		store.roots[name] = &rootfs.Root{Dir: dir, Ref: name, Digest: digest, Python: "/usr/bin/python3"}
	}
	folder, err := runner.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Images{Store: store, Ref: ref, Runner: folder}, store
}

func TestHostStandsInForTheDefaultImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newImages(t)
		store.errs[ref] = errors.New("no route to host")
		for range 2 {
			got, err := s.Get(t.Context(), nil)
			if err != nil || got.Name != "host" || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "no route to host") {
				t.Errorf("got %+v, %v", got, err)
			}
			time.Sleep(lookAgain)
		}
		if want := []string{ref, "host", "host"}; !slices.Equal(store.asked, want) {
			t.Errorf("asked for %q, want %q: the registry must not be asked at every run", store.asked, want)
		}
		delete(store.errs, ref)
		time.Sleep(retryDefault)
		if got, err := s.Get(t.Context(), nil); err != nil || got.Name != ref || len(got.Notes) > 0 {
			t.Errorf("with the registry back: %+v, %v", got, err)
		}
	})
}

func TestNamedImageIsNeverReplaced(t *testing.T) {
	s, store := newImages(t)
	s.Named = true
	store.errs[ref] = errors.New("no route to host")
	got, err := s.Get(t.Context(), nil)
	if !errors.Is(err, store.errs[ref]) || !slices.Equal(store.asked, []string{ref}) {
		t.Errorf("got %+v, %v, after asking for %q", got, err, store.asked)
	}
}

// TestCancelledPullIsNotReplaced: the user ended it, so nothing is to run.
func TestCancelledPullIsNotReplaced(t *testing.T) {
	s, store := newImages(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store.errs[ref] = ctx.Err()
	got, err := s.Get(ctx, nil)
	if !errors.Is(err, context.Canceled) || !slices.Equal(store.asked, []string{ref}) {
		t.Errorf("got %+v, %v, after asking for %q", got, err, store.asked)
	}
}

func TestErrorNamesTheImageAndTheHost(t *testing.T) {
	s, store := newImages(t)
	store.errs[ref], store.errs["host"] = errors.New("no route to host"), errors.New("no python3")
	for range 2 { // the failure is not taken for a stand-in
		_, err := s.Get(t.Context(), nil)
		if !errors.Is(err, store.errs[ref]) || !errors.Is(err, store.errs["host"]) {
			t.Errorf("got %v", err)
		}
	}
	if want := []string{ref, "host", ref, "host"}; !slices.Equal(store.asked, want) {
		t.Errorf("asked for %q, want %q", store.asked, want)
	}
}

// TestImageIsFoundOnceInAWhile: runs in quick succession share one look at the
// store, unless what it found is gone.
func TestImageIsFoundOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newImages(t)
		get := func(looks int, when string) {
			t.Helper()
			store.asked = nil
			got, err := s.Get(t.Context(), nil)
			if err != nil || got.Name != ref || got.Root.Dir != store.roots[ref].Dir || got.Python != "/usr/bin/python3" {
				t.Errorf("%s: got %+v, %v", when, got, err)
			}
			if len(store.asked) != looks {
				t.Errorf("%s: asked for %q", when, store.asked)
			}
		}
		get(1, "at first")
		get(0, "at once")
		time.Sleep(lookAgain)
		get(1, "later")
		store.roots[ref].Dir = t.TempDir()
		if err := os.Remove(s.last.Root.Dir); err != nil {
			t.Fatal(err)
		}
		get(1, "after the root was removed")
		if err := os.RemoveAll(s.Runner); err != nil {
			t.Fatal(err)
		}
		get(1, "after the runner was removed")
		if _, err := os.Stat(filepath.Join(s.Runner, filepath.Base(runner.Program))); err != nil {
			t.Errorf("the runner was not written again: %v", err)
		}
	})
}

// A background keeps what it was asked for.
type background struct {
	mu    sync.Mutex
	asked []string
}

func (b *background) add(work string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, work)
}

func (b *background) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

func (b *background) Refresh(ref string, ask bool) { b.add(fmt.Sprint(ref, " ", ask)) }
func (b *background) Compile(ref, set string)      { b.add(ref + " " + set) }

func TestRefreshIsStartedForWhatIsMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		ref  string
		due  bool
		want []string
	}{
		"modules to compile":          {ref, false, []string{ref + " false"}},
		"the registry to ask as well": {ref, true, []string{ref + " true"}},
		"nothing, on the host":        {"host", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newImages(t)
			s.Ref, store.due = tt.ref, tt.due
			var work background
			s.Background = &work
			image, err := s.Get(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := work.all(); !slices.Equal(got, tt.want) || image.Compiling != (tt.ref == ref) {
				t.Errorf("work in the background: %q, want %q; compiling %v", got, tt.want, image.Compiling)
			}
		})
	}
}

func TestCachedIsTheImageInTheStore(t *testing.T) {
	s, store := newImages(t)
	if got, ok := s.Cached(t.Context()); !ok || got.Name != ref || got.Root.Dir != store.roots[ref].Dir {
		t.Errorf("got %+v, %v", got, ok)
	}
	s.Mounts = []spec.Mount{{Source: t.TempDir(), Target: "/usr/bin"}} // where its Python is
	if got, ok := s.Cached(t.Context()); ok {
		t.Errorf("with a mount that it has no room for: %+v", got)
	}
	if _, err := s.Get(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "TOOLCELL_MOUNTS") {
		t.Errorf("with a mount that it has no room for: %v", err)
	}
	s.Mounts, store.asked = nil, nil
	delete(store.roots, ref)
	if got, ok := s.Cached(t.Context()); ok || len(store.asked) > 0 {
		t.Errorf("got %+v, after asking for %q", got, store.asked)
	}
}

func TestProgressIsPassedOn(t *testing.T) {
	s, _ := newImages(t)
	var got []any
	if _, err := s.Get(t.Context(), func(done, total int64, text string) { got = append(got, done, total, text) }); err != nil {
		t.Fatal(err)
	}
	if want := []any{int64(1), int64(2), "pulling"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSandboxRootHasTheBinds(t *testing.T) {
	got := SandboxRoot(&rootfs.Root{Dir: "/r", Binds: []rootfs.Bind{{Source: "/usr", Target: "/usr"}}})
	if want := []spec.Bind{{Source: "/usr", Target: "/usr"}}; got.Dir != "/r" || !slices.Equal(got.Binds, want) {
		t.Errorf("got %+v", got)
	}
}

// TestFullDiskIsAnError: the host's Python does not stand in for an image for which
// there is only no room.
func TestFullDiskIsAnError(t *testing.T) {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT} {
		s, store := newImages(t)
		store.errs[ref] = fmt.Errorf("unpacking: %w", &os.PathError{Op: "write", Path: "layer", Err: full})
		if _, err := s.Get(t.Context(), nil); !errors.Is(err, full) || slices.Contains(store.asked, "host") {
			t.Errorf("%v, asked for %q", err, store.asked)
		}
	}
}

func TestGreetingNamesThePythonThatRuns(t *testing.T) {
	const unreachable = "no route to host"
	for name, tt := range map[string]struct {
		ref   string
		named bool
		err   error
		link  string // of /usr/bin/python3
		want  string
	}{
		"the image":         {ref, false, nil, "python3.14", "Python 3.14 in a sandbox of " + ref},
		"a stand-in":        {ref, false, errors.New(unreachable), "python3.11", "Python 3.11 of this host, in a sandbox, since the default image could not be pulled: " + unreachable},
		"the host, asked":   {"host", true, nil, "/etc/alternatives/python3.12", "Python 3.12 of this host, in a sandbox"},
		"no version's name": {ref, true, nil, "pypy", "Python in a sandbox of " + ref},
		"no link":           {ref, true, nil, "", "Python in a sandbox of " + ref},
		"nothing to be had": {ref, true, errors.New(unreachable), "", "Python in a sandbox of " + ref},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newImages(t)
			s.Ref, s.Named, store.errs[ref] = tt.ref, tt.named, tt.err
			for _, root := range store.roots {
				bin := filepath.Join(root.Dir, "usr/bin")
				err := os.MkdirAll(bin, 0o755)
				if err == nil && tt.link != "" {
					err = os.Symlink(tt.link, filepath.Join(bin, "python3"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Greeting(t.Context(), nil); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
