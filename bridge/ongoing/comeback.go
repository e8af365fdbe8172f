package ongoing

import (
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

// ComeBack returns the run whose question has an ID, for a call that waits for its answer.
// The error is an EndedError if it is known what became of the run.
func (rs *Runs[R]) ComeBack(c *Call, id string) (*Run[R], error) {
	c.back = true
	return rs.waiting(c.Connection, id)
}

// waiting returns the run that a connection may come back to by the ID of a question.
func (rs *Runs[R]) waiting(from *Connection, id string) (*Run[R], error) {
	rs.mu.Lock()
	r := rs.byID[id]
	rs.mu.Unlock()
	if r != nil && r.connection == from {
		return r, nil
	}
	if why := rs.o.Endings.Why(id); r == nil && why != "" {
		return nil, &EndedError{why}
	}
	return nil, fmt.Errorf("no run waits for an answer as %q: it has ended, or its result was given already", text.Bound(id, 80))
}

// AskedIn returns what a model was told to come back with to a run in a session that
// still waits; "" if there is none.
func (rs *Runs[R]) AskedIn(from *Connection, session string) string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for id, r := range rs.byID {
		if r.connection == from && r.session == session && r.toldOf(id) {
			return id
		}
	}
	return ""
}

// toldOf reports whether a run waits for the answer that a model was told of by this ID.
func (r *Run[R]) toldOf(id string) bool {
	r.mu.Lock()
	told := r.told
	r.mu.Unlock()
	q, waits := r.Asker.Pending()
	return waits && q.ID == id && told == id
}

// park keeps a run that waits for an answer, so that another call can come back to it
// by the question's ID. For the case that this process ends, it notes what the run has
// changed.
func (rs *Runs[R]) park(r *Run[R], q *consent.Question) {
	rs.mu.Lock()
	known := rs.byID[q.ID] == r
	rs.byID[q.ID] = r
	rs.mu.Unlock()
	if known {
		return
	}
	r.mu.Lock()
	r.ids = append(r.ids, q.ID)
	first := len(r.ids) == 1
	r.mu.Unlock()
	rs.o.Endings.Keep(q.ID, "the run ended with toolcell; "+callsDone(q.Effects, q.MoreEffects))
	if first {
		rs.background.Go(contain.Func("forgetting a run", func() { rs.forgetLater(r) }))
	}
}

// forgetLater keeps the result of a run that no call attends for as long as answers are
// waited for.
func (rs *Runs[R]) forgetLater(r *Run[R]) {
	select {
	case <-r.done:
	case <-rs.life.Done():
		return
	}
	keep := time.NewTimer(rs.o.Patience)
	defer keep.Stop()
	select {
	case <-keep.C:
		status, effects, more := r.result.Outcome()
		rs.forget(r, fmt.Sprintf("the result of this run was not asked for in time; its status was %s; %s", status, callsDone(effects, more)))
	case <-r.forgotten:
	case <-rs.life.Done():
	}
}

// forget ends that calls can come back to a run, and remembers why for those that try.
func (rs *Runs[R]) forget(r *Run[R], why string) {
	defer r.forget.Do(func() { close(r.forgotten) })
	r.mu.Lock()
	ids := r.ids
	r.ids = nil
	r.mu.Unlock()
	rs.mu.Lock()
	for _, id := range ids {
		delete(rs.byID, id)
	}
	rs.mu.Unlock()
	for _, id := range ids {
		rs.o.Endings.Add(id, why)
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
