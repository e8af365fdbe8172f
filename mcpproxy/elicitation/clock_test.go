package elicitation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheClockStandsStillWhileItIsPaused, and goes on where it stood.
func TestTheClockStandsStillWhileItIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		ctx, clock, cancel := StartClock(t.Context(), time.Minute, late)
		defer cancel()
		time.Sleep(50 * time.Second)
		clock.Pause()
		clock.Pause()
		time.Sleep(time.Hour)
		clock.Resume()
		time.Sleep(time.Hour)
		clock.Resume()
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
	ctx, clock, cancel := StartClock(t.Context(), 0, nil)
	clock.Pause()
	clock.Resume()
	if clock != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", clock, ctx.Err())
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("it cannot be ended")
	}
}
