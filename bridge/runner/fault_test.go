package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultEndsItsRun with an error, whatever the code does then.
func TestFaultEndsItsRun(t *testing.T) {
	for _, point := range []string{
		"reading what the code sends", "runner: reading a frame", "runner: locked",
		"answering the calls of code", "replying to a call of code",
	} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRunner(t)
				end := f.start(t.Context(), NewBudget(""), time.Hour, atOnce)
				var seen atomic.Bool
				contain.Inject(t, func(at string) bool { return at == point && seen.CompareAndSwap(false, true) })
				go func() { _, _ = io.Copy(io.Discard, f.own) }()
				for _, m := range []frame{{Type: "call", ID: 1}, {Type: "done"}} {
					_ = f.write(m) // it fails once the connection is closed
				}
				synctest.Wait()
				f.exit()
				if err := end(); !errors.Is(err, contain.ErrInternal) || !seen.Load() {
					t.Errorf("ended with %v; came to the point: %v", err, seen.Load())
				}
			})
		})
	}
}

// TestPanicOfACallIsItsError, and the run goes on.
func TestPanicOfACallIsItsError(t *testing.T) {
	f := newFakeRunner(t)
	host := hostFunc(func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		if method == "bad" {
			panic("secret")
		}
		return json.RawMessage("1"), nil
	})
	end := f.start(t.Context(), NewBudget(""), time.Hour, host)
	f.send(frame{Type: "call", ID: 1, Method: "bad"})
	m := f.receive()
	if m.Error == nil || !strings.HasPrefix(m.Error.Message, contain.ErrInternal.Error()) || strings.Contains(m.Error.Message, "secret") {
		t.Errorf("answered %+v, %+v", m, m.Error)
	}
	f.send(frame{Type: "call", ID: 2, Method: "good"})
	if m := f.receive(); m.ID != 2 || string(m.Result) != "1" {
		t.Errorf("answered %+v, %v", m, m.Error)
	}
	f.exit()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A bomb is an error whose text panics.
type bomb struct{}

func (bomb) Error() string { panic("no text") }

// TestAnswerThatCannotBeWrittenEndsItsRun: the code would wait for it for ever. The room of
// its call is given back.
func TestAnswerThatCannotBeWrittenEndsItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := NewBudget(""), newFakeRunner(t)
		end := f.start(t.Context(), b, time.Hour, answers{Make: func() (json.RawMessage, error) { return nil, bomb{} }})
		f.callWith(1, 10<<20)
		f.nothingComes(t)
		f.exit()
		if err := end(); !errors.Is(err, contain.ErrInternal) {
			t.Errorf("ended with %v", err)
		}
		if !b.shared.TryAcquire(maxHeld) {
			t.Error("room was not given back")
		}
	})
}

// A faulty sandbox panics when it is first asked for its end.
type faulty struct {
	lingering
	asked atomic.Bool
}

func (f *faulty) Ended() <-chan struct{} {
	if f.asked.CompareAndSwap(false, true) {
		panic("no end")
	}
	return f.lingering.Ended()
}

// TestFaultOfTheWaitForASandbox: the connection is closed without it, be it that the run was
// stopped or that its frame waits for room.
func TestFaultOfTheWaitForASandbox(t *testing.T) {
	for name, stop := range map[string]bool{"of a stopped run": true, "beside one for room": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, f := NewBudget(""), newFakeRunner(t)
				if !b.shared.TryAcquire(maxHeld) {
					t.Fatal("the budget is not empty")
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wait := runs(ctx, NewConn(&faulty{lingering: lingering{f, time.Minute}}, "", b), Start{}, atOnce)
				f.send(frame{Type: "ready"})
				f.receive()
				if stop {
					cancel()
				} else {
					go f.callWith(1, 4<<20)
				}
				begun := time.Now()
				f.nothingComes(t)
				if waited := time.Since(begun); waited > 0 {
					t.Errorf("the connection was closed after %s", waited)
				}
				f.exit()
				want := contain.ErrInternal
				if stop {
					want = context.Canceled
				}
				if _, err := wait(); !errors.Is(err, want) {
					t.Errorf("ended with %v, want %v", err, want)
				}
			})
		})
	}
}
