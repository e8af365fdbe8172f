package packages

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
)

// pinUV makes a wheel the pinned one, for the time of a test, and has an index serve it.
func pinUV(t *testing.T, wheel []byte) (*fakeIndex, pinnedWheel) {
	pin := pinnedWheel{"uv.whl", sha(wheel)}
	old, ok := uvWheels[runtime.GOARCH]
	uvWheels[runtime.GOARCH] = pin
	t.Cleanup(func() {
		if delete(uvWheels, runtime.GOARCH); ok {
			uvWheels[runtime.GOARCH] = old
		}
	})
	x := newIndex(t, map[string][]byte{pin.file: wheel})
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/uv/") {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<a href="/files/uv.whl">`))
		return true
	})
	return x, pin
}

// jobWithoutUV begins a request of a store that has no uv.
func jobWithoutUV(t *testing.T, s *Store, x *fakeIndex, progress func(Progress)) *job {
	t.Helper()
	s.uv = ""
	j, err := s.begin(x.request("a"), progress)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wheelOfUV(t *testing.T) []byte {
	return makeWheel(t, "uv", wheelFile{name: "uv-" + uvVersion + ".data/scripts/uv", content: "#!uv"})
}

// TestUVIsWaitedForWhileAnotherProcessFetchesIt, but not once it is here.
func TestUVIsWaitedForWhileAnotherProcessFetchesIt(t *testing.T) {
	x, pin := pinUV(t, wheelOfUV(t))
	s := newStore(t)
	j := jobWithoutUV(t, s, x, nil)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	held := func() (unlock func()) {
		unlock, err := openStore(t, s.dir).cache.Try(uvLock("sha256-"+pin.sha256), state.Exclusive)
		if err != nil {
			t.Fatalf("its lock: %v", err)
		}
		return unlock
	}
	unlock := held()
	_, err := j.ensureUV(ctx)
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "waiting for another process that fetches uv") || x.count() > 0 {
		t.Errorf("got %v, %d requests", err, x.count())
	}
	unlock()
	if _, err := j.ensureUV(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer held()()
	if _, err := j.ensureUV(ctx); err != nil {
		t.Errorf("it is here: %v", err)
	}
}

func TestUVIsFetchedOnce(t *testing.T) {
	x, pin := pinUV(t, wheelOfUV(t))
	s := newStore(t)
	other := openStore(t, s.dir)
	var told []Progress
	var mu sync.Mutex
	var group sync.WaitGroup
	want := filepath.Join(s.dir, "uv", "sha256-"+pin.sha256, "uv")
	var jobs []*job
	for i := range 8 {
		jobs = append(jobs, jobWithoutUV(t, []*Store{s, other}[i%2], x, func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p)
		}))
	}
	for _, j := range jobs {
		group.Go(func() {
			if uv, err := j.ensureUV(t.Context()); uv != want || err != nil {
				t.Errorf("got %s, %v", uv, err)
			}
		})
	}
	group.Wait()
	if x.count() != 2 || len(told) != 1 || !strings.Contains(told[0].Text, "fetching uv") {
		t.Errorf("%d requests, told %v", x.count(), told)
	}
	if text, err := os.ReadFile(want); string(text) != "#!uv" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	for _, path := range []string{want, filepath.Dir(want)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if left := tree(t, filepath.Dir(want)); len(left) != 1 {
		t.Errorf("it has %q", left)
	}
	if open := ostest.OpenFiles(t, filepath.Join(s.dir, "uv")); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}

func TestWheelsOfUVHaveTheProgram(t *testing.T) {
	for want, wheel := range map[string][]byte{
		"its wheel does not have the program": makeWheel(t, "uv"),
		"not a valid zip file":                []byte("no"),
		"unsupported compression algorithm":   packedOtherwise(t, "uv-"+uvVersion+".data/scripts/uv"),
	} {
		x, pin := pinUV(t, wheel)
		s := newStore(t)
		_, err := jobWithoutUV(t, s, x, nil).ensureUV(t.Context())
		if err == nil || !strings.Contains(err.Error(), "fetching uv "+uvVersion) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TOOLCELL_UV") {
			t.Errorf("got %v, want %q", err, want)
		}
		if exists(filepath.Join(s.dir, "uv", "sha256-"+pin.sha256)) {
			t.Errorf("%s: a part of it is here", want)
		}
	}
}

func TestUVReplacesNothing(t *testing.T) {
	x, pin := pinUV(t, wheelOfUV(t))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "uv"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := jobWithoutUV(t, newStore(t), x, nil).fetchUV(t.Context(), pin, dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
}

func TestIndexesWithoutUVAreSaid(t *testing.T) {
	x, _ := pinUV(t, wheelOfUV(t))
	x.answers(nil)
	_, err := jobWithoutUV(t, newStore(t), x, nil).ensureUV(t.Context())
	want := "the package index " + x.URL + "/simple: the server answers 404 Not Found"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	delete(uvWheels, runtime.GOARCH)
	_, err = jobWithoutUV(t, newStore(t), x, nil).ensureUV(t.Context())
	if want := "there is no pinned uv for " + runtime.GOARCH; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUVOfTheUserIsAProgram: a sandbox would say less.
func TestUVOfTheUserIsAProgram(t *testing.T) {
	s := newStore(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, link := filepath.Join(dir, "uv"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(program, []byte("#!uv"), 0o600), os.Symlink(program, link)); err != nil {
		t.Fatal(err)
	}
	j, err := s.begin(Request{Index: "https://index.example/simple"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.uv = link
	if uv, err := j.ensureUV(t.Context()); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "using the uv that TOOLCELL_UV names") {
		t.Errorf("got %q, %v", uv, err)
	}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if uv, err := j.ensureUV(t.Context()); uv != program || err != nil {
		t.Errorf("got %q, %v", uv, err)
	}
}
