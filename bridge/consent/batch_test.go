package consent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestAQuestionWaitsForCallsThatAreOnTheirWay, and for no longer than it has to.
func TestAQuestionWaitsForCallsThatAreOnTheirWay(t *testing.T) {
	const ms = time.Millisecond
	type coming struct {
		announced, comes time.Duration // since the start
		more             bool
	}
	for name, tt := range map[string]struct {
		calls []coming
		asked time.Duration // since the start
		about int           // calls
	}{
		"one":                             {[]coming{{0, 0, false}}, 40 * ms, 1},
		"another within batchTime":        {[]coming{{0, 0, false}, {30 * ms, 30 * ms, false}}, 60 * ms, 2},
		"another that comes later":        {[]coming{{0, 0, false}, {50 * ms, 50 * ms, false}}, 40 * ms, 1},
		"another on its way":              {[]coming{{0, 0, false}, {0, 90 * ms, false}}, 130 * ms, 2},
		"two on their way":                {[]coming{{0, 0, false}, {0, 90 * ms, false}, {0, 190 * ms, false}}, 230 * ms, 3},
		"another announced when none was": {[]coming{{0, 0, false}, {10 * ms, 90 * ms, false}}, 130 * ms, 2},
		"another that takes too long":     {[]coming{{0, 0, false}, {0, 2000 * ms, false}}, 1000 * ms, 1},
		"more that do not come":           {[]coming{{0, 0, true}}, 500 * ms, 1},
		"more, and the last one comes":    {[]coming{{0, 0, true}, {290 * ms, 290 * ms, false}}, 320 * ms, 2},
		"more that still follow":          {[]coming{{0, 0, true}, {290 * ms, 290 * ms, true}}, 800 * ms, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				r := d.Begin(AskerOptions{})
				start := time.Now()
				var calls sync.WaitGroup
				for i, c := range tt.calls {
					calls.Go(func() {
						time.Sleep(c.announced)
						arrived := r.Announce(c.more)
						time.Sleep(c.comes - c.announced)
						if err := r.Ask(t.Context(), transfer(i), arrived); !errors.Is(err, context.Canceled) {
							t.Errorf("call %d got %v", i, err)
						}
					})
				}
				q := await(t, d, r)
				if asked := q.AskedAt.Sub(start); asked != tt.asked || len(q.Calls) != tt.about {
					t.Errorf("asked after %v about %d calls, want %v and %d", asked, len(q.Calls), tt.asked, tt.about)
				}
				r.End()
				calls.Wait()
			})
		})
	}
}

func TestNothingIsAskedWithoutAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{NoUser: true, Stop: func(why error) { t.Errorf("the run was stopped: %v", why) }})
		defer r.End()
		if err := r.Ask(t.Context(), transfer(1), r.Announce(false)); !errors.Is(err, ErrNoUser) {
			t.Errorf("a call got %v", err)
		}
		if err := r.AskBefore(t.Context(), "the packages six", nil); !errors.Is(err, ErrNoUser) {
			t.Errorf("packages got %v", err)
		}
		if n := len(d.Questions()); n != 0 {
			t.Errorf("%d questions were asked", n)
		}
	})
}

// A noDeadline makes what waits with it panic at once.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { panic("no deadline") }

// TestCallsAfterAFaultAreAnotherQuestion: they do not share the error of those before, which
// is not that the user denied them.
func TestCallsAfterAFaultAreAnotherQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		life := r.life
		r.life = noDeadline{life}
		if err := <-asking(t, r, transfer(1)); !errors.Is(err, contain.ErrInternal) || errors.Is(err, ErrDenied) {
			t.Fatalf("the first call got %v", err)
		}
		r.life = life
		answer := asking(t, r, transfer(2))
		synctest.Wait()
		if n := r.joined(); n != 1 {
			t.Fatalf("%d calls wait to be asked about", n)
		}
		q := await(t, d, r)
		if len(q.Calls) != 1 || string(q.Calls[0].Arguments) != `{"amount":2}` {
			t.Errorf("asked about %+v", q.Calls)
		}
		if err := d.Decide(q.ID, Answer{Choice: ForCall}); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil {
			t.Errorf("the second call got %v", err)
		}
	})
}
