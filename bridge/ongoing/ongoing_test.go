package ongoing

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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/form"
)

// A result is that of the runs of these tests.
type result struct {
	err     error
	effects []string
}

func (r result) Outcome() (status string, effects []string, more int) {
	return fmt.Sprint(r.err), r.effects, 0
}

func newRuns(t *testing.T, o Options) *Runs[result] {
	life, end := context.WithCancel(context.Background())
	a := New[result](life, o)
	t.Cleanup(func() {
		end()
		a.Wait()
	})
	return a
}

// begin begins a run that asks about a call of up.pay, as often as n says.
func begin(a *Runs[result], from *Connection, n int) *Run[result] {
	return a.Begin(RunOptions{Connection: from}, func(ctx context.Context, r *Run[result]) (res result) {
		if !r.TakeSlot(ctx) {
			return result{err: context.Cause(ctx)}
		}
		defer r.ReleaseSlot()
		r.Attach(ctx, func() func() { return func() {} }, func() (int, []string, int) { return len(res.effects), res.effects, 0 })
		for i := range n {
			args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
			res.err = r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay", Arguments: args}, func() {})
			if res.err != nil {
				return res
			}
			res.effects = append(res.effects, "up.pay "+string(args))
		}
		return res
	})
}

// elsewhere is a call of a client that shows no forms.
func elsewhere(from *Connection) *Call { return &Call{Connection: from} }

// inResults is a call of a client that is asked in results.
func inResults(from *Connection, state string, answer *mcp.ElicitResult) *Call {
	params := &mcp.CallToolParamsRaw{RequestState: state}
	if answer != nil {
		params.InputResponses = mcp.InputResponseMap{"approval": answer}
	}
	return &Call{
		Connection: from, Client: form.Client{Form: true, MultiRound: true}, digest: "request",
		request: &mcp.CallToolRequest{Params: params},
	}
}

func allowed() *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "call"}}
}

func newConnection() *Connection { return &Connection{Marks: &consent.Marks{}} }

// waiting returns by how many IDs calls can come back.
func waiting(a *Runs[result]) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byID)
}

func TestCallsComeBackUntilTheResultIsGiven(t *testing.T) {
	a, from := newRuns(t, Options{}), newConnection()
	r := begin(a, from, 2)
	for range 2 {
		_, approval := a.Attend(t.Context(), r, elsewhere(from))
		if approval == nil || !strings.Contains(approval.Summary(), approval.ID) {
			t.Fatalf("got %+v", approval)
		}
		if err := a.Desk().Decide(approval.ID, consent.Answer{Choice: consent.ForCall}); err != nil {
			t.Fatal(err)
		}
		c := elsewhere(from)
		back, err := a.ComeBack(c, approval.ID)
		if err != nil || back != r {
			t.Fatal(err)
		}
	}
	if _, approval := a.Attend(t.Context(), r, elsewhere(from)); approval != nil || r.Result().err != nil {
		t.Errorf("got %+v, %v", approval, r.Result().err)
	}
	id := a.Desk().Questions()[0].ID
	var ended *EndedError
	if _, err := a.ComeBack(elsewhere(from), id); !errors.As(err, &ended) || waiting(a) != 0 {
		t.Errorf("after the result a call got %v", err)
	}
	if _, err := a.ComeBack(elsewhere(from), "ask-"+strings.Repeat("A", 26)); err == nil || errors.As(err, &ended) {
		t.Errorf("an unknown ID gave %v", err)
	}
}

func TestOtherConnectionsDoNotComeBack(t *testing.T) {
	a, from, other := newRuns(t, Options{}), newConnection(), newConnection()
	r := begin(a, from, 1)
	input, _ := a.Attend(t.Context(), r, inResults(from, "", nil))
	id := a.Desk().Questions()[0].ID
	if _, err := a.ComeBack(elsewhere(other), id); err == nil {
		t.Error("another connection came back by the ID")
	}
	if _, err := a.ComeBackWithAnswer(inResults(other, input.RequestState, allowed()), false); !isTicketError(err) {
		t.Errorf("another connection came back with the ticket: %v", err)
	}
	if _, err := a.ComeBackWithAnswer(inResults(from, input.RequestState, allowed()), false); err != nil {
		t.Fatal(err)
	}
	if err := r.Result().err; err != nil {
		t.Error(err)
	}
}

func isTicketError(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Message == consent.ErrTicket.Error()
}

func TestTicketCountsOnceAndForItsRequestOnly(t *testing.T) {
	a, from := newRuns(t, Options{}), newConnection()
	r := begin(a, from, 1)
	input, _ := a.Attend(t.Context(), r, inResults(from, "", nil))
	changed := inResults(from, input.RequestState, allowed())
	changed.digest = "another request"
	if _, err := a.ComeBackWithAnswer(changed, false); !isTicketError(err) {
		t.Errorf("with another request: %v", err)
	}
	back, err := a.ComeBackWithAnswer(inResults(from, input.RequestState, nil), false)
	if err != nil || back != r {
		t.Fatal(err)
	}
	again, _ := a.Attend(t.Context(), r, inResults(from, "", nil)) // without an answer it is asked again
	if again == nil || again.RequestState == input.RequestState {
		t.Fatalf("asked again with %+v", again)
	}
	if _, err := a.ComeBackWithAnswer(inResults(from, input.RequestState, allowed()), false); !isTicketError(err) {
		t.Errorf("used again: %v", err)
	}
	if _, err := a.ComeBackWithAnswer(inResults(from, again.RequestState, allowed()), false); err != nil {
		t.Error(err)
	}
	if err := r.Result().err; err != nil {
		t.Error(err)
	}
}

// TestResultsAskNineTimes: clients stop after ten.
func TestResultsAskNineTimes(t *testing.T) {
	a, from := newRuns(t, Options{}), newConnection()
	r := begin(a, from, maxRounds+1)
	state := ""
	for i := range maxRounds {
		input, _ := a.Attend(t.Context(), r, inResults(from, state, nil))
		if input == nil {
			t.Fatalf("result %d does not ask", i+1)
		}
		if _, err := a.ComeBackWithAnswer(inResults(from, input.RequestState, allowed()), false); err != nil {
			t.Fatal(err)
		}
	}
	if input, approval := a.Attend(t.Context(), r, inResults(from, state, nil)); input != nil || approval == nil {
		t.Errorf("the tenth result is %+v", input)
	}
}

func TestRunThatWaitsHasNoSlot(t *testing.T) {
	a, from := newRuns(t, Options{Parallel: 1}), newConnection()
	waits := begin(a, from, 1)
	_, approval := a.Attend(t.Context(), waits, elsewhere(from))
	other := begin(a, from, 0)
	if err := other.Result().err; err != nil {
		t.Error(err)
	}
	_ = a.Desk().Decide(approval.ID, consent.Answer{Choice: consent.ForCall})
	if err := waits.Result().err; err != nil {
		t.Error(err)
	}
	if n := len(a.slots); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

func TestResultThatIsNotAskedForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, from := newRuns(t, Options{Patience: time.Minute}), newConnection()
		r := begin(a, from, 2)
		_, approval := a.Attend(t.Context(), r, elsewhere(from))
		_ = a.Desk().Decide(approval.ID, consent.Answer{Choice: consent.ForCall})
		time.Sleep(2*time.Minute + time.Second) // the second question expires, and then the result
		synctest.Wait()
		_, err := a.ComeBack(elsewhere(from), approval.ID)
		var ended *EndedError
		want := `the result of this run was not asked for in time; its status was no answer came in time; calls done: up.pay {"n":0}`
		if !errors.As(err, &ended) || ended.Why != want || waiting(a) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

// TestRunsWaitAndGoOnInAnyOrder has clients whose runs wait while others answer, deny,
// stop, come back and cancel.
func TestRunsWaitAndGoOnInAnyOrder(t *testing.T) {
	a := newRuns(t, Options{Parallel: 2})
	stop := make(chan struct{})
	var answering, calling sync.WaitGroup
	for range 3 {
		answering.Go(func() {
			for {
				changed := a.Desk().Changed()
				for _, q := range a.Desk().Questions() {
					choice := []consent.Choice{consent.ForCall, consent.ForRun, consent.Deny, consent.Stop}[rand.IntN(4)]
					_ = a.Desk().Decide(q.ID, consent.Answer{Choice: choice, By: "test"})
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
			from := newConnection()
			for n := range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 1 {
					time.AfterFunc(time.Duration(rand.IntN(50))*time.Millisecond, cancel)
				}
				r, c := begin(a, from, 3), elsewhere(from)
				for r != nil {
					_, approval := a.Attend(ctx, r, c)
					if approval == nil {
						r.Result()
						break
					}
					c = elsewhere(from)
					back, err := a.ComeBack(c, approval.ID)
					if err != nil || back != r {
						t.Errorf("came back to another run: %v", err)
					}
				}
				cancel()
			}
		})
	}
	calling.Wait()
	close(stop)
	answering.Wait()
	if waiting(a)+len(a.slots) > 0 {
		t.Errorf("calls can come back to %d runs, and %d slots are taken", waiting(a), len(a.slots))
	}
}
