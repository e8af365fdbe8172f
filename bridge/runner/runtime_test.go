package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
)

// pausing starts a run with 2 seconds whose calls pause it for an hour, and returns
// after the first one begins.
func pausing(ctx context.Context, t *testing.T, f *fakeRunner, start Start) (wait func() (Done, error)) {
	type outcome struct {
		done Done
		err  error
	}
	ended := make(chan outcome, 1)
	c := NewConn(f, "", NewBudget(""))
	start.Deadline = deadline.New(2 * time.Second)
	go func() {
		done, err := c.Run(ctx, start, anyGate, hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			defer c.Pause()()
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return json.RawMessage("1"), nil
		}))
		c.Pause()() // no run is active
		ended <- outcome{done, err}
	}()
	f.send(frame{Type: "ready"})
	f.receive()
	f.send(frame{Type: "call", ID: 1})
	synctest.Wait()
	return func() (Done, error) {
		e := <-ended
		return e.done, e.err
	}
}

func TestRunHasItsWholeTimeBesideItsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		begun := time.Now()
		wait := pausing(t.Context(), t, f, Start{})
		f.receive()
		if _, err := wait(); !errors.Is(err, ErrTimeout) || time.Since(begun) != time.Hour+2*time.Second {
			t.Errorf("it ended after %s: %v", time.Since(begun), err)
		}
	})
}

func TestPausedRunCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		cause := errors.New("the client hung up")
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := time.Now()
		wait := pausing(ctx, t, f, Start{})
		cancel(cause)
		if _, err := wait(); !errors.Is(err, cause) || time.Since(begun) >= time.Hour {
			t.Errorf("it ended after %s: %v", time.Since(begun), err)
		}
	})
}

// TestSessionIsKeptIfItsRunEndsPaused: the code need not wait for its calls.
func TestSessionIsKeptIfItsRunEndsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		wait := pausing(t.Context(), t, f, Start{Session: "s"})
		go f.receive() // the reply to the call
		f.send(frame{Type: "done", Kept: true})
		if done, err := wait(); err != nil || !done.Kept {
			t.Errorf("got %+v, %v", done, err)
		}
		time.Sleep(time.Hour)
		if f.killed != nil {
			t.Errorf("it was killed: %v", f.killed)
		}
		f.exit()
	})
}

// TestPausedRunCanEnd without its sandbox.
func TestPausedRunCanEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		wait := pausing(t.Context(), t, f, Start{})
		f.exit()
		if done, err := wait(); err != nil || done.Reported {
			t.Errorf("got %+v, %v", done, err)
		}
	})
}
