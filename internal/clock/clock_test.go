package clock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPausesOfAClockOverlap: it goes on when the last one is over.
func TestPausesOfAClockOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ended time.Duration
		c := New(2 * time.Second)
		c.AfterFunc(func() { ended = time.Since(start) })
		time.Sleep(time.Second)
		first := c.Pause()
		time.Sleep(time.Hour)
		second := c.Pause()
		first()
		time.Sleep(time.Hour)
		if c.Up() {
			t.Error("the time is up while the clock stands still")
		}
		second()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := 2*time.Hour + 2*time.Second; ended != want || !c.Up() {
			t.Errorf("the time was up after %s, want %s", ended, want)
		}
		c.Pause()() // does nothing
		if !c.Up() {
			t.Error("the time is not up any more")
		}
	})
}

// TestStoppedClockStaysStopped, though a pause ends later.
func TestStoppedClockStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(time.Second)
		c.AfterFunc(func() { t.Error("it was called") })
		resume := c.Pause()
		c.Stop()
		resume()
		c.Stop()
		time.Sleep(time.Hour)
	})
}

// TestEachFunctionIsCalledOnce, also one that comes when the time is up.
func TestEachFunctionIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(time.Second)
		var first, second, late atomic.Int32
		c.AfterFunc(func() { first.Add(1) })
		c.AfterFunc(func() { second.Add(1); panic("contained") })
		stop := c.AfterFunc(func() { t.Error("it was stopped") })
		if !stop() || stop() {
			t.Error("stop does not say whether it stopped it")
		}
		time.Sleep(2 * time.Second)
		if c.AfterFunc(func() { late.Add(1) })() {
			t.Error("what was called was stopped")
		}
		time.Sleep(time.Hour)
		if first.Load() != 1 || second.Load() != 1 || late.Load() != 1 {
			t.Errorf("called %d, %d and %d times", first.Load(), second.Load(), late.Load())
		}
	})
}

// TestABoundStandsStillWhileItsClockDoes, and goes on where it stood.
func TestABoundStandsStillWhileItsClockDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		ctx, clock, cancel := Bound(t.Context(), time.Minute, late)
		defer cancel()
		time.Sleep(50 * time.Second)
		first, second := clock.Pause(), clock.Pause()
		time.Sleep(time.Hour)
		second()
		time.Sleep(time.Hour)
		first()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("it ended too early: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), late) {
			t.Errorf("it ended with %v", context.Cause(ctx))
		}
	})
}

// TestWithoutALimitThereIsNoClock, and pausing does no harm.
func TestWithoutALimitThereIsNoClock(t *testing.T) {
	ctx, clock, cancel := Bound(t.Context(), 0, nil)
	clock.Pause()()
	if clock != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", clock, ctx.Err())
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("it cannot be ended")
	}
}
