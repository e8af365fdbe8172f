package rootfs

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockIsWaitedForAndGivenUp(t *testing.T) {
	locks := lockDir(filepath.Join(t.TempDir(), "locks"))
	synctest.Test(t, func(t *testing.T) {
		unlock, err := locks.wait(t.Context(), "a", unix.LOCK_EX)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locks.try("a", unix.LOCK_SH); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("a second holder got %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := locks.wait(short, "a", unix.LOCK_SH); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a minute: %v", err)
		}
		time.AfterFunc(time.Hour, unlock)
		start := time.Now()
		again, err := locks.wait(t.Context(), "a", unix.LOCK_EX)
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
	locks := lockDir(filepath.Join(t.TempDir(), "locks"))
	synctest.Test(t, func(t *testing.T) {
		l := &leases{locks: locks, held: map[string]func(){}}
		unlock, err := locks.wait(t.Context(), useLock("a"), unix.LOCK_EX)
		if err != nil {
			t.Fatal(err)
		}
		if l.acquire("a") {
			t.Error("a root that is being removed can be used")
		}
		time.AfterFunc(2*time.Millisecond, unlock)
		if !l.acquire("a") {
			t.Error("a look at a root kept it from being used")
		}
		if !inUse(locks, "a") {
			t.Error("a root with a lease counts as unused")
		}
		l.releaseAll()
		if inUse(locks, "a") {
			t.Error("a root counts as in use after its last lease")
		}
	})
}
