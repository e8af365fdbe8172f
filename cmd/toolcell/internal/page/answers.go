package page

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// A failure is of a form that changed nothing.
type failure struct {
	id, heading    string // of its question; and in plain words what did not happen
	Problem        string
	Because, Calls string // as they were typed
}

// mayAct refuses a request that is to do something, if the page only reads or the form is not all there:
// a reason that was left out would not be told of.
func (s *Server) mayAct(w http.ResponseWriter, r *http.Request) bool {
	if why := s.o.ReadsOnly(); why != "" {
		s.fail(w, http.StatusForbidden, why)
		return false
	}
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			status = http.StatusRequestEntityTooLarge
		}
		s.fail(w, status, "Nothing was changed: what was typed is too long, or did not arrive whole.")
		return false
	}
	return true
}

// done goes back to the questions, or shows them with what has failed.
func (s *Server) done(w http.ResponseWriter, r *http.Request, f failure, err error) {
	if err == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	status := http.StatusUnprocessableEntity
	if errors.Is(err, consent.ErrUnknown) || errors.Is(err, consent.ErrDecided) {
		status, f.heading = http.StatusConflict, "This question does not wait any more"
	}
	f.id, f.Problem = r.PathValue("id"), "Nothing was changed: "+err.Error()+"."
	if errors.Is(err, inbox.ErrCode) {
		f.Problem = "Wrong code: nothing was approved. Choose again what to allow; the terminal shows a new code."
	}
	s.showWaiting(w, status, &f)
}

// begin begins an approval: its code is shown at the terminal.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	if s.o.ShowCode == nil {
		s.fail(w, http.StatusForbidden, "toolcell ui has no terminal to show a code on, so nothing can be approved here. Approve in one, with `toolcell approvals approve`.")
		return
	}
	id, calls := r.PathValue("id"), r.PostFormValue("calls")
	s.done(w, r, failure{heading: "It was not approved", Calls: calls}, s.withProcess(id, func(c *inbox.Client) (bool, error) {
		chosen := consent.Choice(r.PostFormValue("for"))
		if strings.TrimSpace(calls) != "" && chosen != consent.ForCall {
			return false, errors.New(`numbers of calls go only with "Allow these calls": clear the field, or use that button`)
		}
		challenge, err := c.Begin(id, chosen, strings.TrimSpace(calls))
		if err != nil {
			return false, err
		}
		begun := &approval{process: c, Choice: titled(challenge.Question, chosen), Calls: calls, at: time.Now()}
		if len(challenge.Calls) > 0 {
			begun.Choice.Title = onlySome(challenge)
		}
		if err := s.keep(id, begun); err != nil {
			return false, err
		}
		text := fmt.Sprintf("%s\n\nTo choose \"%s\" for %s, type this code on the page: %s", console.PlainText(challenge.Question.Text), begun.Choice.Title,
			console.OneLine(about(challenge.Question), maxName), challenge.Code)
		if challenge.Remark != "" {
			text = "note: " + challenge.Remark + "\n\n" + text
		}
		if err := s.o.ShowCode(text); err != nil {
			s.take(id)
			return false, fmt.Errorf("showing the code at the terminal: %w", err)
		}
		return true, nil
	}))
}

// onlySome names the choice of some calls of a question.
func onlySome(c inbox.Challenge) string {
	calls := "calls"
	if len(c.Calls) == 1 {
		calls = "call"
	}
	return fmt.Sprintf("Allow only %s %s of these %d", calls, numbers(c.Calls), len(c.Question.Calls))
}

// numbers lists numbers of calls.
func numbers(all []int) string {
	var b strings.Builder
	for i, n := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// keep keeps an approval until its code is typed, in place of one that was begun before.
func (s *Server) keep(id string, begun *approval) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, a := range s.begun {
		if other == id || time.Since(a.at) > beginTime {
			_ = a.process.Close()
			delete(s.begun, other)
		}
	}
	if len(s.begun) >= maxBegun {
		return errors.New("too many approvals were begun and not ended")
	}
	s.begun[id] = begun
	return nil
}

// take returns an approval that was begun, which is no more then.
func (s *Server) take(id string) *approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.begun[id]
	delete(s.begun, id)
	return a
}

// approve ends an approval with the code that was typed. A wrong one ends it, too.
func (s *Server) approve(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	id, f := r.PathValue("id"), failure{heading: "It was not approved"}
	begun := s.take(id)
	if begun == nil {
		s.done(w, r, f, errors.New("choose first what to allow; each code is good for one try"))
		return
	}
	defer func() { _ = begun.process.Close() }()
	f.Calls = begun.Calls
	err := begun.process.Approve(id, strings.TrimSpace(r.PostFormValue("code")))
	if err != nil && !errors.Is(err, consent.ErrUnknown) && !errors.Is(err, consent.ErrDecided) {
		err = fmt.Errorf("%w. To try again, choose again what to allow: the terminal shows another code", err)
	}
	s.done(w, r, f, err)
}

// deny denies what a question asks, or also stops its run, for the reason that was typed.
func (s *Server) deny(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	f := failure{heading: "It was not denied", Because: r.PostFormValue("because")}
	because, err := consent.Because(f.Because)
	if err != nil {
		s.done(w, r, f, err)
		return
	}
	id := r.PathValue("id")
	s.done(w, r, f, s.withProcess(id, func(c *inbox.Client) (bool, error) {
		return false, c.Deny(id, r.PostFormValue("stop") != "", because)
	}))
}

// revoke takes back an approval that still allows something.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	id := r.PathValue("id")
	s.done(w, r, failure{heading: "It was not taken back"}, s.withProcess(id, func(c *inbox.Client) (bool, error) { return false, c.Revoke(id) }))
}
