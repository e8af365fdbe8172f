package cachedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/state"
)

// TestOpenMakesWhatIsMissing and leaves the modes of what is there to the user.
func TestOpenMakesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "real/there"), 0o700), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	c, err := Open(link, "there", "new")
	if err != nil {
		t.Fatal(err)
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, "real")); err != nil || c.Dir != real {
		t.Errorf("the folder is %s, want %s, %v", c.Dir, real, err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "there": 0o700, "new": 0o755, "locks": 0o755} {
		if info, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
			t.Error(err)
		} else if info.Mode() != os.ModeDir|want {
			t.Errorf("%q has %v, want %v", name, info.Mode(), want)
		}
	}
}

// TestCacheIsUsableOnceItCanBeMade: a server opens it only once.
func TestCacheIsUsableOnceItCanBeMade(t *testing.T) {
	dir := t.TempDir()
	layers := filepath.Join(dir, "layers")
	if err := os.WriteFile(layers, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir, "layers")
	if err == nil {
		t.Fatal("a file in place of a folder is no error")
	}
	if _, err := c.Wait(t.Context(), "a", state.Exclusive); err == nil {
		t.Fatal("a lock of a cache that cannot be made")
	}
	if err := os.Remove(layers); err != nil {
		t.Fatal(err)
	}
	unlock, err := c.Wait(t.Context(), "a", state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if info, err := os.Stat(layers); err != nil || !info.IsDir() {
		t.Errorf("the folder was not made: %v, %v", info, err)
	}
}

// TestWaitEndsWithTheCauseAlone, without paths of the host.
func TestWaitEndsWithTheCauseAlone(t *testing.T) {
	c, cause := open(t), errors.New("the server ends")
	unlock, err := c.Wait(t.Context(), "a", state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := c.Wait(ctx, "a", state.Exclusive); err == nil || err.Error() != cause.Error() {
		t.Errorf("got %v", err)
	}
}

// TestEndedLocksAreFree for the next that asks.
func TestEndedLocksAreFree(t *testing.T) {
	c := open(t)
	if err := os.Mkdir(filepath.Join(c.Dir, TempPrefix+"sha256-1-234"), 0o700); err != nil {
		t.Fatal(err)
	}
	for what, use := range map[string]func(){
		"a lock": func() {
			unlock, err := c.LockUnused("sha256-1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.LockUnused("sha256-1"); !errors.Is(err, ErrInUse) {
				t.Errorf("locked twice: %v", err)
			}
			unlock()
		},
		"a look": func() {
			if c.InUse("sha256-1") {
				t.Error("it is in use")
			}
		},
		"a look at one in use": func() {
			c.Acquire("sha256-1")
			if !c.InUse("sha256-1") {
				t.Error("it is not in use")
			}
			c.Release("sha256-1")
		},
		"a sweep": func() { c.Sweep("", "") },
	} {
		use()
		for _, name := range []string{"sha256-1", useLock("sha256-1")} {
			unlock, err := c.IfFree(name)
			if unlock == nil || err != nil {
				t.Fatalf("after %s, %s is not free: %v", what, name, err)
			}
			unlock()
		}
	}
}

// TestReleasedFolderCanBeAcquiredAgain: each time it is in use until then.
func TestReleasedFolderCanBeAcquiredAgain(t *testing.T) {
	c := open(t)
	c.Release("a") // which nobody acquired
	for range 2 {
		for what, release := range map[string]func(){"one": func() { c.Release("a") }, "all": c.ReleaseAll} {
			for range 2 { // again, which one release ends too
				if !c.Acquire("a") || !c.InUse("a") {
					t.Errorf("%s: not acquired", what)
				}
			}
			if release(); c.InUse("a") {
				t.Errorf("%s: not released", what)
			}
		}
	}
}
