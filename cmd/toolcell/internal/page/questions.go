package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	InRun   string     // which calls of the run the numbers in Text are, if there are several and the record has it
	Begun   *approval  // what was chosen, until its code is typed
	Failed  *failure   // of a form of this question, which is filled in again

	Of history.Run // if the record has it
}

// A choice is one that widens rights.
type choice struct {
	Value consent.Choice
	Title string
}

// A nearLine is a line of the code around calls.
type nearLine struct {
	timeline.CodeLine
	Asks    bool   // it makes one of the calls
	Numbers string // of these in the question, if it is about several and they are few
}

// An approval waits for its code.
type approval struct {
	process *inbox.Client // whose connection has the code
	Choice  choice
	Calls   string // as they were typed
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
	s.showWaiting(w, http.StatusOK, nil)
}

// showWaiting shows the questions, and what was typed into a form that has failed, if one has.
func (s *Server) showWaiting(w http.ResponseWriter, status int, failed *failure) {
	body := struct {
		Waiting, Answered []question
		Failed            *failure // of a question that does not wait
		NoTerminal        bool
		Problem           string
		Runs              []row
		Notes             []string // on these
	}{Failed: failed, NoTerminal: s.o.ShowCode == nil}
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
			shown := s.question(c, q)
			if failed != nil && failed.id == q.ID {
				shown.Failed, body.Failed = failed, nil
			}
			body.Waiting = append(body.Waiting, shown)
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
	heading := ""
	if failed != nil {
		title, heading = failed.heading, failed.heading
	}
	s.show(w, status, frame{Title: title, Page: "waiting", Heading: heading, Body: body})
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
	if entries, err := s.o.Record.Show(q.Run); err == nil { // otherwise it is not recorded
		shown.Of, _ = s.o.Record.RunOf(entries)
		shown.Code, shown.InRun = s.codeAround(q, entries)
	}
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

// maxNumbersShown is how many numbers of calls have room beside a line.
const maxNumbersShown = 5

// codeAround returns the code around the calls of a question, and which of the run they are.
func (s *Server) codeAround(q inbox.Question, entries []history.Entry) (near []nearLine, inRun string) {
	t := timeline.New(history.Run{ID: q.Run}, entries)
	at := slices.IndexFunc(t.Questions, func(asked *timeline.Question) bool { return asked.ID == q.ID })
	if at < 0 {
		return nil, ""
	}
	calls, inRun := t.Questions[at].Calls, t.Questions[at].Numbering()
	view := t.View(s.o.Shown())
	asked := func(l timeline.CodeLine) (numbers []int) {
		for _, c := range l.Calls {
			if at := slices.Index(calls, c.Number); at >= 0 {
				numbers = append(numbers, at+1)
			}
		}
		return numbers
	}
	first := slices.IndexFunc(view.Code, func(l timeline.CodeLine) bool { return asked(l) != nil })
	if first < 0 {
		return nil, inRun
	}
	last := first
	for i, l := range view.Code {
		if asked(l) != nil {
			last = i
		}
	}
	for _, l := range view.Code[max(0, first-around):min(len(view.Code), last+around+1, first+100)] {
		line, all := nearLine{CodeLine: l}, asked(l)
		if line.Asks = len(all) > 0; len(calls) > 1 && len(all) <= maxNumbersShown {
			line.Numbers = numbers(all)
		}
		near = append(near, line)
	}
	return near, inRun
}
