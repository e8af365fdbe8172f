package homes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/host"
)

var ample = Limit{1 << 30, time.Minute}

// mark counts installations. Each has to find an empty folder.
func mark(t *testing.T, count *atomic.Int32) Installer {
	return func(_ context.Context, h Home) error {
		count.Add(1)
		if _, err := os.Lstat(filepath.Join(h.Dir, "left")); err == nil {
			t.Error("it has what another installation left")
		}
		return nil
	}
}

func never(context.Context, Home) error { return errors.New("it is installed again") }

// TestInstalledOnce, by however many at once, and again only after it has failed or for something else.
func TestInstalledOnce(t *testing.T) {
	onHosts(t, func(t *testing.T, h host.Host) {
		s := open(t, h)
		why := errors.New("a script failed")
		fail := func(_ context.Context, h Home) error {
			if s.single() || os.Geteuid() == 0 {
				if err := os.WriteFile(filepath.Join(h.Dir, "left"), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			return why
		}
		if _, err := s.EnsureInstalled(t.Context(), "a", "1", ample, fail); !errors.Is(err, why) {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(s.dir + "/*+*"); len(left) > 0 || err != nil {
			t.Errorf("a failed one left %q, %v", left, err)
		}
		var count atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				in, err := Open(s.dir, h).EnsureInstalled(t.Context(), "a", "1", ample, mark(t, &count))
				if err != nil {
					t.Error(err)
				}
				in.Release()
			})
		}
		all.Wait()
		if count.Load() != 1 {
			t.Errorf("it was installed %d times", count.Load())
		}
		own := s.home(t, "a")
		in, err := s.EnsureInstalled(t.Context(), "a", "1", ample, never)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Release()
		if owner := ownerOf(t, in.Dir); !s.single() && (owner == own.UID || !h.ServerUIDs.Contains(owner)) {
			t.Errorf("it belongs to %d, its server's HOME to %d", owner, own.UID)
		}
		if names, err := s.List(); err != nil || len(names) != 1 || names[0] != "a" {
			t.Errorf("listed %q, %v", names, err)
		}
	})
}

// TestKilledInstallationStartsOver, and finds nothing of the last one.
func TestKilledInstallationStartsOver(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, oneID(h))
	of := record{Name: "a", Installed: strings.Repeat("0", 64)}
	home, err := s.startOver(t.Context(), of) // and the process is killed
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home.Dir, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if in, err := s.installed(t.Context(), of); in != nil || err != nil {
		t.Fatalf("it counts as complete: %v, %v", in, err)
	}
	var count atomic.Int32
	if err := s.install(t.Context(), of, ample, mark(t, &count)); err != nil || count.Load() != 1 {
		t.Fatal(count.Load(), err)
	}
	in, err := s.installed(t.Context(), of)
	if in == nil || err != nil {
		t.Fatal(in, err)
	}
	in.Release()
	// The folder is gone, as after purge; its record is not.
	if err := s.RemoveIn(t.Context(), in.Dir); err != nil {
		t.Fatal(err)
	}
	if in, err := s.installed(t.Context(), of); in != nil || err != nil {
		t.Errorf("without its folder it is complete: %v, %v", in, err)
	}
	if _, err := s.startOver(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	if in, err := s.installed(t.Context(), of); in != nil || err != nil {
		t.Errorf("an empty folder is complete: %v, %v", in, err)
	}
}

// TestNewInstallationReplacesOldOnes, but for those in use and for HOME.
func TestNewInstallationReplacesOldOnes(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, oneID(h))
	var count atomic.Int32
	ensure := func(server, what string) *Installed {
		in, err := Open(s.dir, s.host).EnsureInstalled(t.Context(), server, what, ample, mark(t, &count))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(in.Release)
		return in
	}
	home := s.home(t, "a")
	old, used, other := ensure("a", "1"), ensure("a", "2"), ensure("b", "1")
	old.Release()
	other.Release()
	now := ensure("a", "3")
	for path, want := range map[string]bool{old.Dir: false, filepath.Dir(old.Dir): false, used.Dir: true, other.Dir: true, home.Dir: true, now.Dir: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	now.Release()
	used.Release()
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(s.dir + "/a-*"); len(left) > 0 || err != nil {
		t.Errorf("with its server left are %q, %v", left, err)
	}
}

// TestWaitingForAnInstallationEnds with its context.
func TestWaitingForAnInstallationEnds(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, oneID(h))
	_, err = s.EnsureInstalled(t.Context(), "a", "1", ample, func(context.Context, Home) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("given up")
		cancel(why)
		if _, err := s.EnsureInstalled(ctx, "a", "1", ample, never); !errors.Is(err, why) {
			t.Errorf("the second one: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
