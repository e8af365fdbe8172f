package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

// TestNoCallThatWasDoneIsLeftOut: a model that repeats a run goes by what is said of it.
func TestNoCallThatWasDoneIsLeftOut(t *testing.T) {
	seven := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, tt := range []struct {
		effects []string
		more    int
		want    string
	}{
		{nil, 0, "calls done: none that changed anything"},
		{seven[:5], 0, "calls done: a; b; c; d; e"},
		{seven[:6], 0, "calls done: b; c; d; e; f; and 1 other call"},
		{seven, 10, "calls done: c; d; e; f; g; and 12 other calls"},
	} {
		if got := callsDone(tt.effects, tt.more); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// newWaiting makes runs that run no code.
func newWaiting(t *testing.T, o Options) *Runs {
	rs := New(o)
	t.Cleanup(rs.Close)
	return rs
}

// begin begins a run that asks about a call of up.pay, as often as n says.
func begin(rs *Runs, from *consent.Client, n int) *Run {
	return rs.Start(Request{Client: from}, func(ctx context.Context, r *Run) *Result {
		res := &Result{Status: StatusSuccess}
		if !r.slot.take(ctx) {
			return res.fail(context.Cause(ctx))
		}
		defer r.slot.close()
		none := func() {}
		r.Asker.Attach(r.suspending(ctx, func() func() { return none }), func() (int, []string, int) { return len(res.effects), res.effects, 0 })
		for i := range n {
			args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
			if err := r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay", Arguments: args}, none); err != nil {
				return res.fail(err)
			}
			res.effects = append(res.effects, "up.pay "+string(args))
		}
		return res
	})
}

// await waits until a run asks, or has ended: then it returns nil.
func (r *Run) await(ctx context.Context) *consent.Question {
	for {
		changed := r.runs.queue.Changed()
		if q, waits := r.Asker.Pending(); waits {
			return &q
		}
		select {
		case <-changed:
		case <-r.done:
			return nil
		case <-ctx.Done():
			r.Cancel(context.Cause(ctx))
			<-r.done
			return nil
		}
	}
}

func newClient() *consent.Client { return &consent.Client{Taint: &consent.Taint{}} }

var allow = consent.Answer{Choice: consent.ForCall}

func TestCallsComeBackUntilTheResultIsGiven(t *testing.T) {
	rs, from := newWaiting(t, Options{}), newClient()
	r := begin(rs, from, 2)
	var id string
	for range 2 {
		approval := r.Tell(r.await(t.Context())).Approval
		if id = approval.ID; !strings.Contains(approval.Summary(), id) {
			t.Fatalf("got %+v", approval)
		}
		if err := rs.Queue().Decide(id, allow); err != nil {
			t.Fatal(err)
		}
		if back, err := rs.Resume(from, id); err != nil || back != r {
			t.Fatal(err)
		}
	}
	if r.await(t.Context()) != nil || r.Deliver().IsError() {
		t.Errorf("got %+v", r.result)
	}
	var ended *EndedError
	if _, err := rs.Resume(from, id); !errors.As(err, &ended) || len(rs.waiting) != 0 {
		t.Errorf("after the result a call got %v", err)
	}
	if _, err := rs.Resume(from, "ask-"+strings.Repeat("A", 26)); err == nil || errors.As(err, &ended) {
		t.Errorf("an unknown ID gave %v", err)
	}
}

func TestOtherClientsDoNotComeBack(t *testing.T) {
	rs, from, other := newWaiting(t, Options{}), newClient(), newClient()
	r := begin(rs, from, 1)
	q := r.await(t.Context())
	ticket := r.Ticket(q, "request")
	if _, err := rs.Resume(other, q.ID); err == nil {
		t.Error("another client came back by the ID")
	}
	if _, _, err := rs.Redeem(other, ticket, "request"); !errors.Is(err, ErrTicket) {
		t.Errorf("another client came back with the ticket: %v", err)
	}
	if back, of, err := rs.Redeem(from, ticket, "request"); err != nil || back != r || of.ID != q.ID {
		t.Errorf("got %v", err)
	}
}

func TestTicketCountsOnceAndForItsRequestOnly(t *testing.T) {
	rs, from := newWaiting(t, Options{}), newClient()
	r := begin(rs, from, 1)
	q := r.await(t.Context())
	ticket := r.Ticket(q, "request")
	if _, _, err := rs.Redeem(from, ticket, "another request"); !errors.Is(err, ErrTicket) {
		t.Errorf("with another request: %v", err)
	}
	if _, _, err := rs.Redeem(from, ticket, "request"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rs.Redeem(from, ticket, "request"); !errors.Is(err, ErrTicket) {
		t.Errorf("used again: %v", err)
	}
	next := r.Ticket(q, "request") // without an answer it is asked again
	if _, _, err := rs.Redeem(from, ticket, "request"); next == ticket || !errors.Is(err, ErrTicket) {
		t.Errorf("the one before: %v", err)
	}
	if _, _, err := rs.Redeem(from, next, "request"); err != nil {
		t.Error(err)
	}
}

// TestTicketsOpenNothingWhenChanged, nor do those of another process or run.
func TestTicketsOpenNothingWhenChanged(t *testing.T) {
	rs, from := newWaiting(t, Options{}), newClient()
	r, other := begin(rs, from, 1), begin(rs, from, 1)
	q, theirs := r.await(t.Context()), other.await(t.Context())
	ticket := r.Ticket(q, "request")
	wrong := []string{
		"", ".", q.ID, q.ID + ".", ticket + "A", ticket[:len(ticket)-1], ticket + "\n", ticket[:40] + "\r\n" + ticket[40:], strings.ToLower(ticket),
		theirs.ID + ticket[len(q.ID):], other.Ticket(theirs, "request")[:len(theirs.ID)] + ticket[len(q.ID):], strings.Repeat(ticket, 1000),
	}
	for i := range ticket {
		changed := []byte(ticket)
		changed[i] ^= 1
		wrong = append(wrong, string(changed))
	}
	for _, text := range wrong {
		if _, _, err := rs.Redeem(from, text, "request"); !errors.Is(err, ErrTicket) {
			t.Errorf("%.200q: %v", text, err)
		}
	}
	rs.sessions.exits.add("work", "it was ended")
	if _, _, err := rs.Redeem(from, "work.x", "request"); !errors.Is(err, ErrTicket) {
		t.Errorf("the name of a session: %v", err)
	}
	elsewhere := newWaiting(t, Options{})
	if _, _, err := elsewhere.Redeem(from, ticket, "request"); !errors.Is(err, ErrTicket) {
		t.Errorf("another process took it: %v", err)
	}
	if back, _, err := rs.Redeem(from, ticket, "request"); err != nil || back != r {
		t.Errorf("unchanged: %v", err)
	}
}

// TestResultsAskNineTimes: clients stop after ten.
func TestResultsAskNineTimes(t *testing.T) {
	r := begin(newWaiting(t, Options{}), newClient(), 0)
	for i := range maxRounds + 2 {
		if r.MayAsk() != (i < maxRounds) {
			t.Errorf("round %d", i+1)
		}
	}
	asked := newWaiting(t, Options{}).Start(Request{Client: newClient(), Rounds: 2}, func(context.Context, *Run) *Result { return &Result{} })
	for i := range maxRounds {
		if asked.MayAsk() != (i < maxRounds-2) {
			t.Errorf("round %d after two others", i+1)
		}
	}
}

func TestRunThatWaitsHasNoSlot(t *testing.T) {
	rs, from := newWaiting(t, Options{MaxParallel: 1}), newClient()
	waits := begin(rs, from, 1)
	q := waits.await(t.Context())
	if r := begin(rs, from, 0).Result(); r.IsError() {
		t.Error(r.Error)
	}
	_ = rs.Queue().Decide(q.ID, allow)
	if r := waits.Result(); r.IsError() {
		t.Error(r.Error)
	}
	if n := len(rs.slots); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

func TestResultThatIsNotAskedForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs, from := newWaiting(t, Options{ApprovalTimeout: time.Minute}), newClient()
		r := begin(rs, from, 2)
		q := r.await(t.Context())
		r.Tell(q)
		_ = rs.Queue().Decide(q.ID, allow)
		time.Sleep(2*time.Minute + time.Second) // the second question expires, and then the result
		synctest.Wait()
		_, err := rs.Resume(from, q.ID)
		var ended *EndedError
		want := `the result of this run was not asked for in time; its status was sandbox_error; calls done: up.pay {"n":0}`
		if !errors.As(err, &ended) || ended.Why != want || len(rs.waiting) != 0 {
			t.Errorf("got %v", err)
		}
		rs.Close()
	})
}

// TestRunsWaitInAnyOrder has clients whose runs wait while others answer, deny, stop, come back
// and cancel.
func TestRunsWaitInAnyOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	rs := newWaiting(t, Options{MaxParallel: 2})
	stop := make(chan struct{})
	var answering, calling sync.WaitGroup
	for range 3 {
		answering.Go(func() {
			for {
				changed := rs.Queue().Changed()
				for _, q := range rs.Queue().Questions() {
					choice := []consent.Choice{consent.ForCall, consent.ForRun, consent.Deny, consent.Stop}[rand.IntN(4)]
					_ = rs.Queue().Decide(q.ID, consent.Answer{Choice: choice, By: "test"})
				}
				select {
				case <-changed:
				case <-stop:
					return
				}
			}
		})
	}
	for range 6 {
		calling.Go(func() {
			from := newClient()
			for n := range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 1 {
					time.AfterFunc(time.Duration(rand.IntN(50))*time.Millisecond, cancel)
				}
				r := begin(rs, from, 3)
				for q := r.await(ctx); q != nil; q = r.await(ctx) {
					r.Tell(q)
					if back, err := rs.Resume(from, q.ID); err != nil || back != r {
						t.Errorf("came back to another run: %v", err)
					}
				}
				r.Deliver()
				cancel()
			}
		})
	}
	calling.Wait()
	close(stop)
	answering.Wait()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.waiting)+len(rs.slots) > 0 {
		t.Errorf("calls can come back to %d runs, and %d slots are taken", len(rs.waiting), len(rs.slots))
	}
}
