package consent

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultWhileAskingDenies, though the user approves: the calls of a batch are denied
// wherever it panics, the code is let go, and the question of another run stays.
func TestFaultWhileAskingDenies(t *testing.T) {
	for _, point := range []string{
		"consent: asking", "consent: freezing", "consent: frozen", "consent: decided", "consent: settling",
		"taking the user's answer", "asking the user",
	} {
		t.Run(point, func(t *testing.T) {
			var seen, over atomic.Bool
			contain.Inject(t, func(at string) bool { return !over.Load() && at == point && seen.CompareAndSwap(false, true) })
			over.Store(true)
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				other := d.Begin(AskerOptions{Client: &Client{}})
				defer other.End()
				waiting := asking(t, other, transfer(2))
				before := await(t, d, other)

				over.Store(false)
				var held atomic.Int32
				r := d.Begin(AskerOptions{Client: &Client{}, Abort: func(error) {}, Stop: func(error) {}})
				defer r.End()
				r.Attach(func() func() { held.Add(1); return func() { held.Add(-1) } }, nil)
				first, second := asking(t, r, transfer(1)), asking(t, r, transfer(3))
				go func() {
					for {
						changed := d.Changed()
						if q, ok := r.Pending(); ok {
							_ = d.Decide(q.ID, Answer{Choice: ForRun})
						}
						select {
						case <-changed:
						case <-r.life.Done():
							return
						}
					}
				}()
				for _, answer := range []<-chan error{first, second} {
					if <-answer == nil {
						t.Error("a call is allowed")
					}
				}
				synctest.Wait()
				over.Store(true)
				if !seen.Load() {
					t.Fatal("this point was not passed")
				}
				if _, pending := r.Pending(); pending || held.Load() != 0 {
					t.Errorf("a question waits: %t, the code is held %d times", pending, held.Load())
				}
				if (point == "consent: settling" || point == "taking the user's answer") && r.Granted(transfer(1)) != "" {
					t.Error("an answer that panicked grants the tool for the run")
				}
				if q, ok := other.Pending(); !ok || q.ID != before.ID {
					t.Error("the other run's question is gone")
				}
				if err := d.Decide(before.ID, Answer{Choice: ForCall}); err != nil {
					t.Error(err)
				}
				if err := <-waiting; err != nil {
					t.Errorf("the other run: %v", err)
				}
				if len(d.frozen) != 0 {
					t.Errorf("%d runs count as frozen", len(d.frozen))
				}
			})
		})
	}
}

// TestAnAnswerThatPanicsIsADenial, and whoever gave it is told.
func TestAnAnswerThatPanicsIsADenial(t *testing.T) {
	for _, point := range []string{"consent: settling", "taking the user's answer"} {
		for _, choice := range append([]Choice{ForCall, ForRun, Believe}, connectionChoices...) {
			t.Run(point+"/"+string(choice), func(t *testing.T) {
				contain.Inject(t, func(at string) bool { return at == point })
				synctest.Test(t, func(t *testing.T) {
					d := NewQueue(Options{})
					r := d.Begin(AskerOptions{Client: lastingClient()})
					defer r.End()
					call := transfer(1)
					call.Hint, call.ReadsOnly = "it reads", true
					answer := asking(t, r, call)
					q := await(t, d, r)
					if err := d.Decide(q.ID, Answer{Choice: choice}); !errors.Is(err, contain.ErrInternal) {
						t.Errorf("the answer gave %v", err)
					}
					if err := <-answer; !errors.Is(err, ErrDenied) {
						t.Errorf("the call got %v", err)
					}
					if r.Granted(call) != "" || r.Believed(call) {
						t.Errorf("granted: %v, its hint is believed: %v", r.Granted(call), r.Believed(call))
					}
				})
			})
		}
	}
}

// TestVerdictsDenyByDefault, since what is not computed was not allowed.
func TestVerdictsDenyByDefault(t *testing.T) {
	for _, b := range []*batch{{}, {verdicts: make([]verdict, 2)}, {verdicts: []verdict{{allowed: true}}}} {
		if b.verdict(1) == nil {
			t.Errorf("%+v allows", b)
		}
	}
	if (&Question{}).err() == nil || (Answer{}).state() != Denied {
		t.Error("a question without a state, or an answer without a choice, allows")
	}
}
