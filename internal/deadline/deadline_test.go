package deadline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPausesOverlap: time counts again when the last one is over.
func TestPausesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ended time.Duration
		d := New(2 * time.Second)
		d.AfterFunc(func() { ended = time.Since(start) })
		time.Sleep(time.Second)
		first := d.Pause()
		time.Sleep(time.Hour)
		second := d.Pause()
		first()
		time.Sleep(time.Hour)
		if d.Passed() {
			t.Error("the deadline passes while it is paused")
		}
		second()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := 2*time.Hour + 2*time.Second; ended != want || !d.Passed() {
			t.Errorf("the time was up after %s, want %s", ended, want)
		}
		d.Pause()() // does nothing
		if !d.Passed() {
			t.Error("the time is not up any more")
		}
	})
}

// TestStoppedClockStaysStopped, though a pause ends later.
func TestStoppedClockStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(time.Second)
		d.AfterFunc(func() { t.Error("it was called") })
		resume := d.Pause()
		d.Stop()
		resume()
		d.Stop()
		time.Sleep(time.Hour)
	})
}

// TestEachFunctionIsCalledOnce, also one that comes when the time is up.
func TestEachFunctionIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(time.Second)
		var first, second, late atomic.Int32
		d.AfterFunc(func() { first.Add(1) })
		d.AfterFunc(func() { second.Add(1); panic("contained") })
		stop := d.AfterFunc(func() { t.Error("it was stopped") })
		if !stop() || stop() {
			t.Error("stop does not say whether it stopped it")
		}
		time.Sleep(2 * time.Second)
		if d.AfterFunc(func() { late.Add(1) })() {
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
		ctx, d, cancel := Bound(t.Context(), time.Minute, late)
		defer cancel()
		time.Sleep(50 * time.Second)
		first, second := d.Pause(), d.Pause()
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
	ctx, d, cancel := Bound(t.Context(), 0, nil)
	d.Pause()()
	if d != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", d, ctx.Err())
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("it cannot be ended")
	}
}
