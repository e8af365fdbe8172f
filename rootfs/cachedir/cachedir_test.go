package cachedir

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

func open(t *testing.T) *Cache {
	c, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLockIsWaitedForAndGivenUp(t *testing.T) {
	c := open(t)
	synctest.Test(t, func(t *testing.T) {
		unlock, err := c.Wait(t.Context(), "a", state.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Try("a", state.Shared); !errors.Is(err, state.ErrLocked) {
			t.Errorf("a second holder got %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Wait(short, "a", state.Shared); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a minute: %v", err)
		}
		time.AfterFunc(time.Hour, unlock)
		start := time.Now()
		again, err := c.Wait(t.Context(), "a", state.Exclusive)
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
	c := open(t)
	synctest.Test(t, func(t *testing.T) {
		unlock, err := c.Wait(t.Context(), useLock("a"), state.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if c.Acquire("a") {
			t.Error("a root that is being removed can be used")
		}
		time.AfterFunc(2*time.Millisecond, unlock)
		if !c.Acquire("a") {
			t.Error("a look at a root kept it from being used")
		}
		if !c.InUse("a") {
			t.Error("a root with a lease counts as unused")
		}
		c.ReleaseAll()
		if c.InUse("a") {
			t.Error("a root counts as in use after its last lease")
		}
	})
}
