package consent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// await returns the question that waits, once one does.
func await(t *testing.T, d *Queue, r *Asker) Question {
	t.Helper()
	for {
		changed := d.Changed()
		if q, ok := r.Pending(); ok {
			return q
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("no question came")
		}
	}
}

func transfer(amount int) Call {
	return Call{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, amount)), Reasons: []string{"because"}}
}

// asking asks in the background and returns where the answer comes.
func asking(t *testing.T, r *Asker, c Call) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- r.Ask(t.Context(), c, func() {}) }()
	return answer
}

// TestARunCanBeStoppedByWhatAServerAsks: a server that asks again and again would have it
// wait for ever.
func TestARunCanBeStoppedByWhatAServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		var stopped error
		r := d.Begin(AskerOptions{Stop: func(why error) { stopped = why }})
		defer r.End()
		answer := make(chan error, 1)
		go func() {
			_, err := r.AskForm(t.Context(), Form{Server: "bank", Tool: "transfer", Message: "again?"})
			answer <- err
		}()
		q := await(t, d, r)
		for _, wrong := range []Answer{{Choice: ForCall}, {Choice: ForRun}, {Choice: Deny}, {Choice: Stop, Action: "accept"}} {
			if d.Decide(q.ID, wrong) == nil {
				t.Errorf("%+v was taken", wrong)
			}
		}
		if err := d.Decide(q.ID, Answer{Choice: Stop}); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; !errors.Is(err, ErrStopped) || !errors.Is(stopped, ErrStopped) {
			t.Errorf("the server's question gave %v, the run %v", err, stopped)
		}
	})
}

// TestARunCanBeStoppedBeforeItsCodeStarts: `toolcell approvals deny --stop` is for every
// question, also where its choices are yes and no.
func TestARunCanBeStoppedBeforeItsCodeStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		var stopped error
		r := d.Begin(AskerOptions{Stop: func(why error) { stopped = why }})
		defer r.End()
		answer := make(chan error, 1)
		go func() { answer <- r.AskBefore(t.Context(), "the packages six", nil) }()
		q := await(t, d, r)
		if err := d.Decide(q.ID, Answer{Choice: Stop}); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; !errors.Is(err, ErrStopped) || !errors.Is(stopped, ErrStopped) {
			t.Errorf("the question gave %v, the run %v", err, stopped)
		}
	})
}

// TestAToolThatIsAllowedForTheRunIsAskedForANewReason, such as that its definition has
// changed since.
func TestAToolThatIsAllowedForTheRunIsAskedForANewReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		call := func(reasons ...string) Call {
			c := transfer(1)
			c.Reasons = reasons
			return c
		}
		for _, tt := range []struct {
			call  Call
			asked bool
		}{
			{call("because"), true},
			{call("because"), false},
			{call("because", "it has changed"), true},
			{call("it has changed"), false},
			{call("it has changed again", "because"), true},
			{call(), false},
		} {
			before := len(d.Questions())
			answer := asking(t, r, tt.call)
			if tt.asked {
				if err := d.Decide(await(t, d, r).ID, Answer{Choice: ForRun}); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-answer; err != nil || len(d.Questions()) > before != tt.asked {
				t.Errorf("%v: %v, asked: %v", tt.call.Reasons, err, !tt.asked)
			}
		}
	})
}

// TestRevokingAtOnce takes back an approval while its run goes on with it. The race
// detector looks on.
func TestRevokingAtOnce(t *testing.T) {
	d := NewQueue(Options{})
	for range 50 {
		r := d.Begin(AskerOptions{})
		answer := asking(t, r, transfer(1))
		q := await(t, d, r)
		if err := errors.Join(d.Decide(q.ID, Answer{Choice: ForRun}), d.Revoke(q.ID)); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil || r.Granted(Call{Server: "bank", Tool: "transfer"}) != "" {
			t.Errorf("the call: %v; still granted: %v", err, r.Granted(Call{Server: "bank", Tool: "transfer"}))
		}
		r.End()
	}
}

func TestAnswersToCalls(t *testing.T) {
	for choice, want := range map[Choice]error{ForCall: nil, ForRun: nil, Deny: ErrDenied, Stop: ErrStopped} {
		t.Run(string(choice), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				var stopped error
				r := d.Begin(AskerOptions{Stop: func(why error) { stopped = why }})
				defer r.End()
				answer := asking(t, r, transfer(1))
				q := await(t, d, r)
				if err := d.Decide(q.ID, Answer{Choice: choice}); err != nil {
					t.Fatal(err)
				}
				if err := <-answer; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				synctest.Wait()
				if choice == Stop && !errors.Is(stopped, ErrStopped) || choice != Stop && stopped != nil {
					t.Errorf("the run was stopped: %v", stopped)
				}
				if granted := r.Granted(Call{Server: "bank", Tool: "transfer"}) != ""; granted != (choice == ForRun) {
					t.Errorf("granted for the run: %v", granted)
				}
				if err := d.Decide(q.ID, Answer{Choice: ForCall}); !errors.Is(err, ErrDecided) {
					t.Errorf("a second answer gave %v", err)
				}
			})
		})
	}
}

func TestNothingButAChoiceOfTheQuestionAllowsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		once := transfer(1)
		once.Once = true
		answer := asking(t, r, once)
		q := await(t, d, r)
		for _, a := range []Answer{{}, {Choice: "yes"}, {Choice: ForRun}, {Action: "accept"}, {Choice: ForCall, Action: "accept"}} {
			if err := d.Decide(q.ID, a); err == nil || errors.Is(err, ErrDecided) {
				t.Errorf("%+v was taken: %v", a, err)
			}
		}
		if err := d.Decide("ask-AAAAAAAAAAAAAAAAAAAAAAAAAA", Answer{Choice: ForCall}); !errors.Is(err, ErrUnknown) {
			t.Errorf("an unknown question gave %v", err)
		}
		_ = d.Decide(q.ID, Answer{Choice: Deny})
		if err := <-answer; !errors.Is(err, ErrDenied) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOnlyTheFirstOfManyAnswersCounts(t *testing.T) {
	d := NewQueue(Options{})
	r := d.Begin(AskerOptions{})
	defer r.End()
	answer := asking(t, r, transfer(1))
	q := await(t, d, r)
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if d.Decide(q.ID, Answer{Choice: Deny}) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("%d answers were taken", n)
	}
	if err := <-answer; !errors.Is(err, ErrDenied) {
		t.Errorf("got %v", err)
	}
}

// TestArgumentsOfAQuestionAreBounded: they stay in memory until it is answered.
func TestArgumentsOfAQuestionAreBounded(t *testing.T) {
	of := func(size int) Call {
		return Call{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)}
	}
	synctest.Test(t, func(t *testing.T) {
		r := NewQueue(Options{}).Begin(AskerOptions{})
		if err := r.Ask(t.Context(), of(maxAsked+1), func() {}); err == nil || !strings.Contains(err.Error(), "of at most 1048576") {
			t.Errorf("one call: %v", err)
		}
		arrived := r.Announce(false)
		first := asking(t, r, of(maxAsked))
		synctest.Wait()
		if err := r.Ask(t.Context(), of(2), func() {}); err == nil || !strings.Contains(err.Error(), "of at most 1048576") {
			t.Errorf("one more for the same question: %v", err)
		}
		arrived()
		r.End()
		<-first
	})
}

func TestCallsThatComeTogetherAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		arrived := r.Announce(false)
		var answers []<-chan error
		for i := range 100 {
			answers = append(answers, asking(t, r, transfer(i)))
		}
		time.Sleep(500 * time.Millisecond)
		answers = append(answers, asking(t, r, transfer(1000))) // its server had to start
		synctest.Wait()
		arrived()
		q := await(t, d, r)
		if len(q.Calls) != 101 {
			t.Fatalf("the question is about %d calls", len(q.Calls))
		}
		later := asking(t, r, transfer(2000))
		if err := d.Decide(q.ID, Answer{Choice: ForCall}); err != nil {
			t.Fatal(err)
		}
		for _, answer := range answers {
			if err := <-answer; err != nil {
				t.Fatal(err)
			}
		}
		next := await(t, d, r)
		if len(next.Calls) != 1 || next.ID == q.ID {
			t.Errorf("the next question is %s about %d calls", next.ID, len(next.Calls))
		}
		_ = d.Decide(next.ID, Answer{Choice: Deny})
		<-later
	})
}

func TestRunIsFrozenWhileItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{Frozen: 2})
		var frozen atomic.Int32
		begin := func() *Asker {
			r := d.Begin(AskerOptions{Stop: func(error) {}})
			r.Attach(func() func() { frozen.Add(1); return func() { frozen.Add(-1) } }, func() (int, []string, int) { return 3, []string{"x.y {}"}, 0 })
			return r
		}
		a, b, c := begin(), begin(), begin()
		first, second := asking(t, a, transfer(1)), asking(t, b, transfer(2))
		q := await(t, d, a)
		await(t, d, b)
		if q.CallsBefore != 3 || len(q.Effects) != 1 {
			t.Errorf("the question knows of %d calls and %q", q.CallsBefore, q.Effects)
		}
		if n := frozen.Load(); n != 2 {
			t.Errorf("%d runs are frozen", n)
		}
		if err := <-asking(t, c, transfer(3)); err == nil || errors.Is(err, ErrDenied) {
			t.Errorf("a third run got %v", err)
		}
		_ = d.Decide(q.ID, Answer{Choice: ForCall})
		if err := <-first; err != nil {
			t.Error(err)
		}
		b.End()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the run that ended got %v", err)
		}
		synctest.Wait()
		if n := frozen.Load(); n != 0 {
			t.Errorf("%d runs are still frozen", n)
		}
	})
}

func TestQuestionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		var stopped error
		r := d.Begin(AskerOptions{Timeout: time.Minute, Stop: func(why error) { stopped = why }})
		defer r.End()
		answer := asking(t, r, transfer(1))
		q := await(t, d, r)
		time.Sleep(time.Minute)
		if err := <-answer; !errors.Is(err, ErrExpired) {
			t.Errorf("got %v", err)
		}
		if err := d.Decide(q.ID, Answer{Choice: ForCall}); !errors.Is(err, ErrDecided) {
			t.Errorf("an answer after that gave %v", err)
		}
		synctest.Wait()
		if !errors.Is(stopped, ErrExpired) {
			t.Errorf("the run was stopped with %v", stopped)
		}
	})
}

func TestGrantForTheRunIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		answer := asking(t, r, transfer(1))
		q := await(t, d, r)
		_ = d.Decide(q.ID, Answer{Choice: ForRun})
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		if err := d.Revoke(q.ID); err != nil || r.Granted(Call{Server: "bank", Tool: "transfer"}) != "" {
			t.Errorf("%v, granted: %v", err, r.Granted(Call{Server: "bank", Tool: "transfer"}))
		}
		if err := d.Revoke(q.ID); err == nil {
			t.Error("it was taken back twice")
		}
	})
}

// TestARunThatWasStoppedIsNotAskedAgain, and what was allowed for the rest of it is not any
// more: its calls may still be on their way.
func TestARunThatWasStoppedIsNotAskedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		stop func(d *Queue, id string) error
		want error
	}{
		"by the user": {func(d *Queue, id string) error { return d.Decide(id, Answer{Choice: Stop}) }, ErrStopped},
		"no answer":   {func(*Queue, string) error { return nil }, ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				var stopped []error
				r := d.Begin(AskerOptions{Stop: func(why error) { stopped = append(stopped, why) }})
				defer r.End()
				allow(t, d, r, transfer(1))
				other := transfer(2)
				other.Tool = "close_account"
				answer := asking(t, r, other)
				if err := tt.stop(d, await(t, d, r).ID); err != nil {
					t.Fatal(err)
				}
				if err := <-answer; !errors.Is(err, tt.want) {
					t.Errorf("the call got %v", err)
				}
				if r.Granted(transfer(1)) != "" {
					t.Error("the other tool is still allowed")
				}
				for _, c := range []Call{transfer(1), other} {
					if err := <-asking(t, r, c); !errors.Is(err, tt.want) {
						t.Errorf("a later call of %s got %v", c.Tool, err)
					}
				}
				if _, err := r.AskForm(t.Context(), Form{Server: "bank", Message: "again?"}); !errors.Is(err, tt.want) {
					t.Errorf("a server that asks got %v", err)
				}
				if n := len(d.Questions()); n != 2 {
					t.Errorf("%d questions were asked", n)
				}
				if len(stopped) != 1 || !errors.Is(stopped[0], tt.want) {
					t.Errorf("the run was stopped with %v", stopped)
				}
			})
		})
	}
}

// allow has the user allow a tool for the rest of the run.
func allow(t *testing.T, d *Queue, r *Asker, c Call) {
	t.Helper()
	answer := asking(t, r, c)
	if err := d.Decide(await(t, d, r).ID, Answer{Choice: ForRun}); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil || r.Granted(c) == "" {
		t.Fatalf("%v, granted: %v", err, r.Granted(c))
	}
}

// A noDone makes what waits for it panic.
type noDone struct{ context.Context }

func (noDone) Done() <-chan struct{} { panic("no channel") }

// TestAFaultWhileAQuestionWaitsEndsItAndTheRun: nobody would take the answer.
func TestAFaultWhileAQuestionWaitsEndsItAndTheRun(t *testing.T) {
	for want, abort := range map[string]bool{"aborted": true, "stopped": false} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				var ended []string
				end := func(how string) func(error) {
					return func(why error) {
						ended = append(ended, how)
						if !errors.Is(why, contain.ErrInternal) {
							t.Errorf("the run is %s with %v", how, why)
						}
					}
				}
				o := AskerOptions{Stop: end("stopped")}
				if abort {
					o.Abort = end("aborted")
				}
				r := d.Begin(o)
				defer r.End()
				allow(t, d, r, transfer(1))
				form := Form{Server: "bank", Tool: "transfer", Message: "your name?"}
				if _, err := r.AskForm(noDone{t.Context()}, form); !errors.Is(err, contain.ErrInternal) {
					t.Errorf("the server's question gave %v", err)
				}
				if q, waits := r.Pending(); waits {
					t.Errorf("%s still waits", q.ID)
				}
				if !slices.Equal(ended, []string{want}) {
					t.Errorf("the run was ended by %q", ended)
				}
				if r.Granted(transfer(1)) != "" {
					t.Error("the tool is still allowed")
				}
				if _, err := r.AskForm(t.Context(), form); !errors.Is(err, contain.ErrInternal) {
					t.Errorf("the server's next question gave %v", err)
				}
				all := d.Questions()
				if len(all) != 2 || all[1].State != Ended || d.Decide(all[1].ID, Answer{Action: "accept"}) == nil {
					t.Errorf("the questions are %+v", all)
				}
			})
		})
	}
}

// TestTheEndOfARunEndsWhatAServerAsks, though the call that it asks for goes on.
func TestTheEndOfARunEndsWhatAServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{Stop: func(why error) { t.Errorf("the run was stopped: %v", why) }})
		answer := make(chan error, 1)
		go func() {
			_, err := r.AskForm(t.Context(), Form{Server: "bank", Tool: "transfer", Message: "your name?"})
			answer <- err
		}()
		id := await(t, d, r).ID
		r.End()
		if q, _ := d.Question(id); q.State != Ended {
			t.Errorf("the question is %s", q.State)
		}
		if err := d.Decide(id, Answer{Action: "accept"}); !errors.Is(err, ErrDecided) {
			t.Errorf("an answer after that gave %v", err)
		}
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("the server's question gave %v", err)
		}
	})
}

// TestARunThatEndedIsNeitherAskedNorFrozen: its sandbox may be gone.
func TestARunThatEndedIsNeitherAskedNorFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{Stop: func(why error) { t.Errorf("the run was stopped: %v", why) }})
		r.Attach(func() func() { t.Error("it is frozen"); return func() {} },
			func() (int, []string, int) { t.Error("it is asked what it has done"); return 0, nil, 0 })
		r.End()
		if _, err := r.AskForm(t.Context(), Form{Server: "bank", Tool: "transfer", Message: "your name?"}); !errors.Is(err, context.Canceled) {
			t.Errorf("the server's question gave %v", err)
		}
		if n := len(d.Questions()); n != 0 {
			t.Errorf("%d questions were asked", n)
		}
	})
}
