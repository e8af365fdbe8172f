package run

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// An EndedError is why a call cannot come back to a run that has waited.
type EndedError struct{ Why string }

func (e *EndedError) Error() string { return e.Why }

// ErrTicket is the error of a ticket that is not ours or was changed.
var ErrTicket = errors.New("this requestState is not valid: it was changed, used before, is too old, or belongs to another request")

// Resume returns the run whose question has an ID, for a call of the client that began it.
// The error is an EndedError if it is known what became of the run.
func (rs *Runs) Resume(from *consent.Client, id string) (*Run, error) {
	rs.mu.Lock()
	r := rs.waiting[id]
	rs.mu.Unlock()
	if r != nil && r.req.Client == from {
		return r, nil
	}
	if why := rs.sessions.exits.why(id); r == nil && why != "" {
		return nil, &EndedError{why}
	}
	return nil, fmt.Errorf("no run waits for an answer as %q: it has ended, or its result was given already", text.Bound(id, 80))
}

// Redeem returns the run that a ticket belongs to, and its question. A ticket counts once, for
// the request with this digest, of the client that began the run. The error is an EndedError if
// it is known what became of the run, otherwise ErrTicket.
func (rs *Runs) Redeem(from *consent.Client, ticket, digest string) (*Run, *consent.Question, error) {
	id, _, _ := strings.Cut(ticket, ".")
	if !consent.IsID(id) { // such as the name of a session
		return nil, nil, ErrTicket
	}
	r, err := rs.Resume(from, id)
	if ended, ok := errors.AsType[*EndedError](err); ok {
		return nil, nil, ended // the ID is enough to be told: another process may have made the ticket
	}
	if err != nil || !r.redeem(ticket, digest) {
		return nil, nil, ErrTicket
	}
	q, _ := rs.queue.Question(id)
	return r, &q, nil
}

// Ticket returns what a client brings back with its answer to a question, as requestState (MCP
// specification, Multi Round-Trip Requests): the question's ID, so that another process can say
// what became of its run, and 128 random bits, so that only who got it has it. It takes the place
// of an earlier one. It is for a request with this digest.
func (r *Run) Ticket(q *consent.Question, digest string) string {
	r.suspend(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticket, r.digest = q.ID+"."+rand.Text(), digest
	return r.ticket
}

// maxRounds bounds the questions of one run that are in results: clients stop after ten.
const maxRounds = 9

// MayAsk counts a question in a result, and reports whether the client takes it.
func (r *Run) MayAsk() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds++
	return r.rounds <= maxRounds
}

// redeem takes a ticket, if it is the one that counts.
func (r *Run) redeem(ticket, digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ticket == "" || subtle.ConstantTimeCompare([]byte(r.ticket), []byte(ticket)) == 0 || r.digest != digest {
		return false
	}
	r.ticket = ""
	return true
}

// AskedIn returns what a model was told to come back with to a run in a session that
// still waits; "" if there is none.
func (rs *Runs) AskedIn(from *consent.Client, session string) string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for id, r := range rs.waiting {
		if r.req.Client == from && r.req.Session == session && r.toldOf(id) {
			return id
		}
	}
	return ""
}

// toldOf reports whether a run waits for the answer that a model was told of by this ID.
func (r *Run) toldOf(id string) bool {
	r.mu.Lock()
	told := r.told
	r.mu.Unlock()
	q, waits := r.Asker.Pending()
	return waits && q.ID == id && told == id
}

// Tell suspends the run, and returns what tells a model of the question that the run waits for.
func (r *Run) Tell(q *consent.Question) *Result {
	r.suspend(q)
	r.mu.Lock()
	r.told = q.ID
	r.mu.Unlock()
	a := newApproval(q)
	return &Result{Status: StatusApproval, Approval: a, Summary: a.Summary()}
}

// suspend keeps a run that waits for an answer, so that another call can come back to it
// by the question's ID. For the case that this process ends, it notes what the run has
// changed.
func (r *Run) suspend(q *consent.Question) {
	rs := r.runs
	rs.mu.Lock()
	known := rs.waiting[q.ID] == r
	rs.waiting[q.ID] = r
	rs.mu.Unlock()
	if known {
		return
	}
	r.mu.Lock()
	r.ids = append(r.ids, q.ID)
	first := len(r.ids) == 1
	r.mu.Unlock()
	rs.sessions.exits.keep(q.ID, "the run ended with toolcell; "+callsDone(q.Effects, q.MoreEffects))
	if first {
		rs.background.Go(contain.Func("forgetting a run", r.forgetLater))
	}
}

// forgetLater keeps the result of a run that no call waits for as long as a question is kept
// open.
func (r *Run) forgetLater() {
	life := r.runs.life.Done()
	select {
	case <-r.done:
	case <-life:
		return
	}
	keep := time.NewTimer(r.o.ApprovalTimeout)
	defer keep.Stop()
	select {
	case <-keep.C:
		status, effects, more := r.result.Outcome()
		r.forget(fmt.Sprintf("the result of this run was not asked for in time; its status was %s; %s", status, callsDone(effects, more)))
	case <-r.forgotten:
	case <-life:
	}
}

// Deliver returns the result of a run that has ended, to a client. Calls cannot come back to it
// any more.
func (r *Run) Deliver() *Result {
	res := r.Result()
	r.forget("the result of this run was given already")
	return res
}

// forget ends that calls can come back to a run, and remembers why for those that try.
func (r *Run) forget(why string) {
	defer r.forgetOnce.Do(func() { close(r.forgotten) })
	r.mu.Lock()
	ids := r.ids
	r.ids = nil
	r.mu.Unlock()
	r.runs.mu.Lock()
	for _, id := range ids {
		delete(r.runs.waiting, id)
	}
	r.runs.mu.Unlock()
	for _, id := range ids {
		r.runs.sessions.exits.add(id, why)
	}
}

// maxNamed bounds the calls that callsDone names.
const maxNamed = 5

// callsDone says what a run has changed.
func callsDone(effects []string, more int) string {
	if len(effects) == 0 {
		return "calls done: none that changed anything"
	}
	named := effects[max(0, len(effects)-maxNamed):]
	done := "calls done: " + strings.Join(named, "; ")
	if n := len(effects) + more - len(named); n > 0 {
		done += "; and " + text.Plural(n, "other call")
	}
	return done
}
