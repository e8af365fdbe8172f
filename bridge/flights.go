package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/oci"
)

// A flight is a run under way. It goes on by itself when the call that began it has
// returned, because the user is being asked.
type flight struct {
	run     *consent.Run
	client  any    // the connection whose calls may take part
	session string // that it runs in, if any
	cancel  context.CancelCauseFunc

	done   chan struct{}
	result *Result // once done
	// gone is closed when no call can come back to it any more.
	gone      chan struct{}
	forgotten sync.Once

	mu     sync.Mutex
	report func(done, total int64, text string) // to the call that attends; nil if none does
	nonce  string                               // of the ticket that counts
	rounds int                                  // of questions in results
	ids    []string                             // of its questions that calls may come back with
	told   string                               // the one of them that a model was told to come back with
}

// flights are the runs that calls may come back to, by the IDs of their questions.
type flights struct {
	mu   sync.Mutex
	byID map[string]*flight
}

// begin starts a run that goes on until it has ended, or f.cancel is called.
func (s *Server) begin(req Request, client any, nobody bool) *flight {
	ctx, cancel := context.WithCancelCause(s.life)
	f := &flight{client: client, session: req.Session, cancel: cancel, done: make(chan struct{}), gone: make(chan struct{})}
	f.run = s.desk.Begin(consent.RunOptions{ID: newRunID(), Nobody: nobody, Marks: s.marksOf(client), Stop: func(why error) { cancel(why) }})
	if report := req.Progress; report != nil {
		f.report = report
		req.Progress = f.progress
	}
	s.o.Upstreams.SetElicits(req.elicits)
	s.background.Go(func() {
		defer cancel(nil)
		start := time.Now()
		r := s.run(ctx, req, f.run)
		f.run.End()
		r.summarize()
		if r.cause != nil {
			s.o.Log.Debug("a run could not be carried out", "error", oci.Detail(r.cause))
		}
		s.o.Log.Info("run", "status", r.Status, "servers", len(r.Servers), "ms", time.Since(start).Milliseconds())
		f.result = r
		close(f.done)
	})
	return f
}

// marksOf returns what a connection has read from private servers.
func (s *Server) marksOf(client any) *consent.Marks {
	m, _ := s.marks.LoadOrStore(client, &consent.Marks{})
	return m.(*consent.Marks)
}

// newRunID returns a short name for a run, for people who are asked about several.
func newRunID() string { return strings.ToLower(rand.Text()[:8]) }

// progress reports to the call that attends the run, if one does.
func (f *flight) progress(done, total int64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report != nil {
		f.report(done, total, text)
	}
}

// follow has the run report to a call. "Progress notifications MUST stop after
// completion." (MCP specification, Progress)
func (f *flight) follow(report func(done, total int64, text string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report = report
}

// park keeps a run that waits for an answer, so that another call can come back to it
// by the question's ID. For the case that this process ends, it notes what the run has
// changed.
func (s *Server) park(f *flight, q *consent.Question) {
	s.flights.mu.Lock()
	known := s.flights.byID[q.ID] == f
	s.flights.byID[q.ID] = f
	s.flights.mu.Unlock()
	if known {
		return
	}
	f.mu.Lock()
	f.ids = append(f.ids, q.ID)
	first := len(f.ids) == 1
	f.mu.Unlock()
	s.sessions.endings.Keep(q.ID, "the run ended with toolcell; "+callsDone(q.Effects))
	if first {
		s.background.Go(func() { s.forgetLater(f) })
	}
}

// forgetLater keeps the result of a run that nobody attends for as long as answers are
// waited for.
func (s *Server) forgetLater(f *flight) {
	select {
	case <-f.done:
	case <-s.life.Done():
		return
	}
	keep := time.NewTimer(s.o.ApprovalTimeout)
	defer keep.Stop()
	select {
	case <-keep.C:
		s.forget(f, "the result of this run was not asked for in time; "+callsOf(f.result))
	case <-f.gone:
	case <-s.life.Done():
	}
}

// forget ends that calls can come back to a run, and remembers why for those that try.
func (s *Server) forget(f *flight, why string) {
	defer f.forgotten.Do(func() { close(f.gone) })
	f.mu.Lock()
	ids := f.ids
	f.ids = nil
	f.mu.Unlock()
	s.flights.mu.Lock()
	for _, id := range ids {
		delete(s.flights.byID, id)
	}
	s.flights.mu.Unlock()
	for _, id := range ids {
		s.sessions.endings.Add(id, why)
	}
}

// waiting returns the run that a client may come back to by the ID of a question.
func (s *Server) waiting(client any, id string) (*flight, error) {
	s.flights.mu.Lock()
	f := s.flights.byID[id]
	s.flights.mu.Unlock()
	if f != nil && f.client == client {
		return f, nil
	}
	if why := s.sessions.endings.Why(id); f == nil && why != "" {
		return nil, withStatus(StatusCancelled, errors.New(why))
	}
	return nil, withStatus(StatusValidation, fmt.Errorf("no run waits for an answer as %q: it has ended, or its result was given already", id))
}

// askedIn returns what a model was told to come back with to a run in a session that
// still waits; "" if there is none.
func (s *Server) askedIn(client any, session string) string {
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	for id, f := range s.flights.byID {
		if f.client == client && f.session == session && f.toldOf(id) {
			return id
		}
	}
	return ""
}

// toldOf reports whether a run waits for the answer that a model was told of by this ID.
func (f *flight) toldOf(id string) bool {
	f.mu.Lock()
	told := f.told
	f.mu.Unlock()
	q, waits := f.run.Pending()
	return waits && q.ID == id && told == id
}

// callsDone says what a run has changed.
func callsDone(effects []string) string {
	if len(effects) == 0 {
		return "calls done: none that changed anything"
	}
	return "calls done: " + strings.Join(effects[max(0, len(effects)-5):], "; ")
}

// callsOf is callsDone of a run that is over.
func callsOf(r *Result) string {
	var effects []string
	for _, c := range r.Calls {
		effects = append(effects, c.Server+"."+c.Tool+" "+c.Arguments)
	}
	return fmt.Sprintf("its status was %s; %s", r.Status, callsDone(effects))
}
