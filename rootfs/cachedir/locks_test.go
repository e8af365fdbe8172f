package cachedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

func newLocks(t *testing.T) Locks {
	dir := filepath.Join(t.TempDir(), "locks")
	return NewLocks(dir, func() error { return os.MkdirAll(dir, 0o755) })
}

func TestLockIsWaitedForAndGivenUp(t *testing.T) {
	locks := newLocks(t)
	synctest.Test(t, func(t *testing.T) {
		unlock, err := locks.Wait(t.Context(), "a", state.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locks.Try("a", state.Shared); !errors.Is(err, state.ErrLocked) {
			t.Errorf("a second holder got %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := locks.Wait(short, "a", state.Shared); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a minute: %v", err)
		}
		time.AfterFunc(time.Hour, unlock)
		start := time.Now()
		again, err := locks.Wait(t.Context(), "a", state.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		defer again()
		// It asks at least every 50 milliseconds.
		if waited := time.Since(start); waited < time.Hour || waited > time.Hour+50*time.Millisecond {
			t.Errorf("waited %s", waited)
		}
	})
}

// A process that lists images looks for a moment whether a root is in use: one that
// begins to use it then must not take it for one that is being removed.
func TestLeaseOutlastsALookAtTheRoot(t *testing.T) {
	locks := newLocks(t)
	synctest.Test(t, func(t *testing.T) {
		l := NewLeases(locks)
		unlock, err := locks.Wait(t.Context(), useLock("a"), state.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if l.Acquire("a") {
			t.Error("a root that is being removed can be used")
		}
		time.AfterFunc(2*time.Millisecond, unlock)
		if !l.Acquire("a") {
			t.Error("a look at a root kept it from being used")
		}
		if !InUse(locks, "a") {
			t.Error("a root with a lease counts as unused")
		}
		l.ReleaseAll()
		if InUse(locks, "a") {
			t.Error("a root counts as in use after its last lease")
		}
	})
}
