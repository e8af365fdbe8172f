package consent

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestACallThatIsAllowedGetsNoAnswerToOthers has calls come while a question
// waits whose answer allows one of them.
func TestACallThatIsAllowedGetsNoAnswerToOthers(t *testing.T) {
	d := NewQueue(Options{})
	r := d.Begin(AskerOptions{})
	defer r.End()
	first := asking(t, r, transfer(1))
	q := await(t, d, r)
	other := transfer(3)
	other.Tool = "close_account"
	same, denied := asking(t, r, transfer(2)), asking(t, r, other)
	for r.joined() < 2 {
		runtime.Gosched()
	}
	if err := d.Decide(q.ID, Answer{Choice: ForRun}); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	q = await(t, d, r)
	if len(q.Calls) != 1 || q.Calls[0].Tool != "close_account" {
		t.Errorf("asked about %+v", q.Calls)
	}
	_ = d.Decide(q.ID, Answer{Choice: Deny})
	if err := <-denied; !errors.Is(err, ErrDenied) {
		t.Errorf("the other call got %v", err)
	}
	if err := <-same; err != nil {
		t.Errorf("a call of a tool that is allowed for the run got %v", err)
	}
}

// joined returns how many calls wait to be asked about.
func (r *Asker) joined() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return 0
	}
	return len(r.open.calls)
}

func TestDecidedQuestionsAreKeptWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		large := transfer(1)
		large.Arguments = []byte(`"` + strings.Repeat("x", maxAsked-2) + `"`)
		for range 40 {
			answer := asking(t, r, large)
			_ = d.Decide(await(t, d, r).ID, Answer{Choice: Deny})
			<-answer
		}
		if n := len(d.Questions()); n != 32 {
			t.Errorf("%d questions of 1 MiB are kept", n)
		}
		answer := asking(t, r, large)
		q := await(t, d, r)
		if n := len(d.Questions()); n != 33 {
			t.Errorf("%d questions of 1 MiB are kept with one that waits", n)
		}
		_ = d.Decide(q.ID, Answer{Choice: Deny})
		<-answer
		for range maxKept + 5 {
			answer := asking(t, r, transfer(1))
			_ = d.Decide(await(t, d, r).ID, Answer{Choice: Deny})
			<-answer
		}
		if n := len(d.Questions()); n != maxKept {
			t.Errorf("%d questions are kept", n)
		}
		answer = asking(t, r, transfer(1))
		q = await(t, d, r)
		if n := len(d.Questions()); n != maxKept {
			t.Errorf("%d questions are kept with one that waits", n)
		}
		_ = d.Decide(q.ID, Answer{Choice: Deny})
		<-answer
	})
}

// TestAnAnswerCountsUntilItsQuestionExpires, though nothing has noted yet that it did.
func TestAnAnswerCountsUntilItsQuestionExpires(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		err   error
		state State
	}{
		"in time":  {time.Minute - 1, nil, Approved},
		"too late": {time.Minute, ErrDecided, Expired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewQueue(Options{})
				r := d.Begin(AskerOptions{})
				defer r.End()
				q := &Question{ID: newID(), Calls: []Call{transfer(1)}, State: Pending, ExpiresAt: time.Now().Add(time.Minute), run: r, decided: make(chan struct{})}
				if !r.put(q) {
					t.Fatal("it is not asked")
				}
				time.Sleep(tt.after)
				if err := d.Decide(q.ID, Answer{Choice: ForRun}); !errors.Is(err, tt.err) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if q, _ := d.Question(q.ID); q.State != tt.state || (r.Granted(transfer(1)) != "") != (tt.state == Approved) {
					t.Errorf("it is %s, granted: %v", q.State, r.Granted(transfer(1)))
				}
				select {
				case <-q.decided:
				default:
					t.Error("its run still waits")
				}
			})
		})
	}
}

// TestAQuestionIsRecordedInEachState, and those who wait for a change learn of it.
func TestAQuestionIsRecordedInEachState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var recorded []State
		d := NewQueue(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r := d.Begin(AskerOptions{Record: func(q Question) { recorded = append(recorded, q.State) }})
		defer r.End()
		answer := asking(t, r, transfer(1))
		q := await(t, d, r)
		for i, step := range []struct {
			do   func() error
			want State
		}{
			{func() error { return nil }, Pending},
			{func() error { return d.Decide(q.ID, Answer{Choice: ForRun, By: "form"}) }, Approved},
			{func() error { return d.Revoke(q.ID) }, Revoked},
		} {
			changed := d.Changed()
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if len(recorded) != i+1 || recorded[i] != step.want {
				t.Errorf("%s: recorded is %v", step.want, recorded)
			}
			if step.want == Pending {
				continue
			}
			select {
			case <-changed:
			default:
				t.Errorf("%s: nothing has changed", step.want)
			}
			if !strings.Contains(log.String(), "state="+string(step.want)) {
				t.Errorf("%s: logged is\n%s", step.want, log.String())
			}
		}
		if err := <-answer; err != nil {
			t.Error(err)
		}
	})
}

func TestAnswersAreLogged(t *testing.T) {
	var log bytes.Buffer
	d := NewQueue(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	r := d.Begin(AskerOptions{ID: "run7"})
	defer r.End()
	answer := asking(t, r, transfer(1))
	_ = d.Decide(await(t, d, r).ID, Answer{Choice: ForCall, By: "form"})
	<-answer
	entered := make(chan error, 1)
	go func() {
		_, err := r.AskForm(t.Context(), Form{Server: "bank", Tool: "login", Message: "your PIN?"})
		entered <- err
	}()
	_ = d.Decide(await(t, d, r).ID, Answer{Action: "accept", Content: map[string]any{"pin": "4711"}, By: "form"})
	<-entered
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		"state=approved by=form choice=call run=run7 server=bank tool=transfer sha256=" + transfer(1).Digest(),
		"state=answered by=form choice=accept run=run7 server=bank tool=login sha256=",
	} {
		for word := range strings.FieldsSeq("time= " + want) {
			if len(lines) != 2 || !strings.Contains(lines[i], word) {
				t.Errorf("%q is not logged:\n%s", word, log.String())
			}
		}
	}
	if strings.Contains(log.String(), "4711") {
		t.Errorf("what the user has entered is logged:\n%s", log.String())
	}
}

// TestTheLogSaysWhatIsOddAboutAnAnswer: why it may be no person's.
func TestTheLogSaysWhatIsOddAboutAnAnswer(t *testing.T) {
	var log bytes.Buffer
	d := NewQueue(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	r := d.Begin(AskerOptions{})
	defer r.End()
	answer := make(chan error, 1)
	go func() { answer <- r.AskBefore(t.Context(), "the packages six", nil) }()
	q := await(t, d, r)
	_ = d.Decide(q.ID, Answer{Choice: ForCall, By: "toolcell approvals", PID: 7, Remark: "late"})
	if err := <-answer; err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("logged is\n%s", log.String())
	}
	for i, want := range [][]string{
		{"level=INFO", "state=approved", "question=" + q.ID, "pid=7", "remark=late", `about="the packages six"`},
	} {
		for _, part := range want {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%q is not in %s", part, lines[i])
			}
		}
	}
}

// TestNoClientTakesThePlacesOfOthers, and one alone has all of them.
func TestNoClientTakesThePlacesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		type client struct {
			Client
			runs []*Asker
		}
		// ask has runs of a client ask, and returns how many of them wait.
		ask := func(c *client, n int) (waiting int) {
			for range n {
				r := d.Begin(AskerOptions{Client: &c.Client, Stop: func(error) {}})
				c.runs = append(c.runs, r)
				answer := asking(t, r, transfer(1))
				time.Sleep(time.Second)
				synctest.Wait()
				select {
				case err := <-answer:
					if errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "`toolcell approvals`") {
						t.Errorf("got %v", err)
					}
				default:
					waiting++
				}
			}
			return waiting
		}
		var greedy, second, third client
		if n := ask(&greedy, 12); n != 8 {
			t.Errorf("%d runs of the only client wait", n)
		}
		if n := ask(&second, 12); n != 4 {
			t.Errorf("%d runs of the second client wait", n)
		}
		if n := ask(&third, 12); n != 4 {
			t.Errorf("%d runs of the third client wait", n)
		}
		for _, c := range []client{greedy, second} {
			for _, r := range c.runs {
				r.End()
			}
		}
		synctest.Wait()
		if n := ask(&third, 12); n != 4 {
			t.Errorf("%d more runs of the client that is alone then wait", n)
		}
		for _, r := range third.runs {
			r.End()
		}
		synctest.Wait()
		if len(d.frozen) != 0 {
			t.Errorf("of clients without runs is kept: %v", d.frozen)
		}
	})
}
