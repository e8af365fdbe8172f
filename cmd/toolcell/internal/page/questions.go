package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// A question is one on the page.
type question struct {
	inbox.Question
	Text    string // what is asked, as a terminal shows it
	Left    time.Duration
	Choices []choice
	Code    []nearLine // around the calls, if the record has it
	Begun   *approval  // what was chosen, until its code is typed
}

// A choice is one that widens rights.
type choice struct {
	Value consent.Choice
	Title string
}

// A nearLine is a line of the code around calls.
type nearLine struct {
	timeline.CodeLine
	Asks bool // it makes one of the calls
}

// An approval waits for its code.
type approval struct {
	process *inbox.Client // whose connection has the code
	Choice  choice
	at      time.Time
}

// Bounds on approvals that were begun.
const (
	maxBegun  = 20
	beginTime = 10 * time.Minute
)

// list returns the questions of all processes, and an error if some do not answer.
func (s *Server) list() ([]inbox.Question, error) {
	all, err := s.o.Connect()
	if err != nil {
		return nil, err
	}
	defer closeAll(all)
	return inbox.ListAll(all)
}

func closeAll(all []*inbox.Client) {
	for _, c := range all {
		_ = c.Close() // all replies were read
	}
}

// withProcess calls f with a connection to the process that has a question. The connection is closed unless
// f keeps it.
func (s *Server) withProcess(id string, f func(*inbox.Client) (keep bool, err error)) error {
	all, err := s.o.Connect()
	if err != nil {
		return err
	}
	for i, c := range all {
		if _, err := c.Show(id); errors.Is(err, consent.ErrUnknown) {
			continue
		} else if err != nil {
			s.o.Log.Debug("looking for a question", "error", err)
			continue
		}
		keep, err := f(c)
		if keep {
			all = slices.Delete(all, i, i+1)
		}
		closeAll(all)
		return err
	}
	closeAll(all)
	return consent.ErrUnknown
}

// waiting is the page of the questions that wait, and of those that were answered a while ago.
func (s *Server) waiting(w http.ResponseWriter, _ *http.Request) {
	body := struct {
		Waiting, Answered []question
		NoTerminal        bool
		Problem           string
		Runs              []row
		Notes             []string // on these
	}{NoTerminal: s.o.ShowCode == nil}
	all, err := s.o.Connect()
	if err != nil {
		body.Problem = err.Error()
	}
	defer closeAll(all)
	for _, c := range all {
		questions, err := c.List()
		if err != nil {
			body.Problem = err.Error()
		}
		for _, q := range questions {
			if q.State != consent.Pending {
				if s.o.ReadsOnly() != "" {
					q.Because = ""
				}
				body.Answered = append(body.Answered, question{Question: q})
				continue
			}
			body.Waiting = append(body.Waiting, s.question(c, q))
		}
	}
	byTime := func(a, b question) int { return a.AskedAt.Compare(b.AskedAt) }
	slices.SortFunc(body.Waiting, byTime)
	slices.SortFunc(body.Answered, func(a, b question) int { return byTime(b, a) })
	body.Answered = lastAnswered(body.Answered)
	if body.Runs, _, err = s.newest(query{N: 10}); err != nil {
		body.Problem = err.Error()
	}
	body.Notes = s.listNotes(body.Runs)
	title := "Nothing waits"
	if n := len(body.Waiting); n > 0 {
		title = fmt.Sprintf("(%d) waiting", n)
	}
	s.show(w, http.StatusOK, frame{Title: title, Page: "waiting", Body: body})
}

// lastAnswered leaves out all but the first answers, and those that can still be taken back.
func lastAnswered(all []question) (last []question) {
	for i, q := range all {
		if i < 20 || q.Holds {
			last = append(last, q)
		}
	}
	return last
}

// question adds what is known of a question that waits.
func (s *Server) question(c *inbox.Client, q inbox.Question) question {
	shown := question{Question: q, Left: max(0, time.Until(q.ExpiresAt).Round(time.Second))}
	if s.o.ReadsOnly() != "" {
		shown.Text = "What it asks is not shown here."
		return shown
	}
	if whole, err := c.Show(q.ID); err == nil {
		shown.Text = console.PlainText(whole.Text)
	}
	for _, each := range q.Choices {
		if each != consent.Deny && each != consent.Stop {
			shown.Choices = append(shown.Choices, titled(q, each))
		}
	}
	shown.Code = s.codeAround(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun := s.begun[q.ID]; begun != nil && time.Since(begun.at) < beginTime {
		shown.Begun = begun
	}
	return shown
}

// titled is a choice in the words of the question itself.
func titled(q inbox.Question, c consent.Choice) choice {
	of := consent.Question{Calls: make([]consent.Call, len(q.Calls))}
	if q.Subject == "" && len(q.Calls) == 0 { // of one call there is no list
		of.Calls = make([]consent.Call, 1)
	}
	return choice{c, of.Title(c)}
}

// about names what a question is about: a long one may have left the screen of a terminal.
func about(q inbox.Question) string {
	switch {
	case q.Subject != "":
		return q.Subject
	case len(q.Calls) > 1:
		return fmt.Sprintf("%d calls, the first of %s.%s", len(q.Calls), q.Calls[0].Server, q.Calls[0].Tool)
	}
	return q.Server + "." + q.Tool
}

// around is how many lines of code are shown before and after a call.
const around = 4

// codeAround returns the code around the calls of a question.
func (s *Server) codeAround(q inbox.Question) (near []nearLine) {
	entries, err := s.o.Record.Show(q.Run)
	if err != nil {
		return nil // it is not recorded
	}
	t := timeline.New(history.Run{ID: q.Run}, entries)
	at := slices.IndexFunc(t.Questions, func(asked *timeline.Question) bool { return asked.ID == q.ID })
	if at < 0 {
		return nil
	}
	calls := t.Questions[at].Calls
	view := t.View(s.o.Shown())
	asked := func(l timeline.CodeLine) bool {
		return slices.ContainsFunc(l.Calls, func(c *timeline.Call) bool { return slices.Contains(calls, c.Number) })
	}
	first := slices.IndexFunc(view.Code, asked)
	if first < 0 {
		return nil
	}
	last := first
	for i, l := range view.Code {
		if asked(l) {
			last = i
		}
	}
	for _, l := range view.Code[max(0, first-around):min(len(view.Code), last+around+1, first+100)] {
		near = append(near, nearLine{l, asked(l)})
	}
	return near
}

// mayAct refuses a request that is to do something, if the page only reads.
func (s *Server) mayAct(w http.ResponseWriter) bool {
	if why := s.o.ReadsOnly(); why != "" {
		s.fail(w, http.StatusForbidden, why)
		return false
	}
	return true
}

// done goes back to the questions, or says why that was not done.
func (s *Server) done(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, consent.ErrUnknown), errors.Is(err, consent.ErrDecided):
		s.fail(w, http.StatusConflict, "Nothing was changed: "+err.Error()+".")
	case err != nil:
		s.fail(w, http.StatusForbidden, "Nothing was changed: "+err.Error()+".")
	default:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// begin begins an approval: its code is shown at the terminal.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w) {
		return
	}
	if s.o.ShowCode == nil {
		s.fail(w, http.StatusForbidden, "toolcell ui has no terminal to show a code on, so nothing can be approved here. Approve in one, with `toolcell approvals approve`.")
		return
	}
	id := r.PathValue("id")
	s.done(w, r, s.withProcess(id, func(c *inbox.Client) (bool, error) {
		chosen := consent.Choice(r.PostFormValue("for"))
		challenge, err := c.Begin(id, chosen, strings.TrimSpace(r.PostFormValue("calls")))
		if err != nil {
			return false, err
		}
		begun := &approval{process: c, Choice: titled(challenge.Question, chosen), at: time.Now()}
		if len(challenge.Calls) > 0 {
			begun.Choice.Title = fmt.Sprintf("Allow of these %d calls only %s", len(challenge.Question.Calls), numbers(challenge.Calls))
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
	if !s.mayAct(w) {
		return
	}
	id := r.PathValue("id")
	begun := s.take(id)
	if begun == nil {
		s.fail(w, http.StatusConflict, "Nothing was changed: choose first what to allow.")
		return
	}
	defer func() { _ = begun.process.Close() }()
	s.done(w, r, begun.process.Approve(id, strings.TrimSpace(r.PostFormValue("code"))))
}

// deny denies what a question asks, or also stops its run, for the reason that was typed.
func (s *Server) deny(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w) {
		return
	}
	because, err := consent.Because(r.PostFormValue("because"))
	if err != nil {
		s.done(w, r, err)
		return
	}
	id := r.PathValue("id")
	s.done(w, r, s.withProcess(id, func(c *inbox.Client) (bool, error) {
		return false, c.Deny(id, r.PostFormValue("stop") != "", because)
	}))
}

// revoke takes back an approval that still allows something.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w) {
		return
	}
	id := r.PathValue("id")
	s.done(w, r, s.withProcess(id, func(c *inbox.Client) (bool, error) { return false, c.Revoke(id) }))
}
