package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

// A recordedAnswer is a row of approvals list --all: a question that is on record, and what became of it.
type recordedAnswer struct {
	ID       string    `json:"id"`
	Run      string    `json:"run"`
	State    string    `json:"state"` // as of approvals list; unanswered if its process was killed
	Scope    string    `json:"scope,omitempty"`
	AskedAt  time.Time `json:"askedAt,omitzero"`
	Decided  time.Time `json:"decidedAt,omitzero"`
	By       string    `json:"by,omitempty"`
	Client   string    `json:"client,omitempty"`
	Terminal string    `json:"terminal,omitempty"`
	PID      int       `json:"pid,omitempty"`
	Remark   string    `json:"remark,omitempty"`
	About    string    `json:"about"`             // call, input or before
	Calls    []string  `json:"calls,omitempty"`   // SERVER.TOOL of each
	Allowed  []int     `json:"allowed,omitempty"` // which of Calls were allowed, from 1 on, if others were denied

	Question *timeline.Value `json:"question,omitempty"` // what the user was shown
	Because  *timeline.Value `json:"because,omitempty"`  // what the user says to what is denied

	arguments string // of the first call
	because   string // on one line, or why it is not shown
}

// unanswered is the state of a question that no process has, and that has no answer on record.
const unanswered = "unanswered"

// approvalsAll prints all questions that are on record, the oldest first.
func approvalsAll(o approvalsOptions) error {
	waiting, err := listApprovals(o.Options)
	if err != nil {
		console.Note(o.Err, err.Error()) // the record does not need them
	}
	var entries []history.Entry // and the verdicts, which name the calls
	for e, err := range o.history().Newest(record.KindVerdict, record.KindAsk) {
		if err != nil {
			return o.Settings.Dirs.Explain(err)
		}
		entries = append(entries, e)
	}
	slices.Reverse(entries)
	for _, field := range []string{"shown", "arguments", "because"} {
		if err := o.history().JoinValues(entries, field); err != nil {
			return o.Settings.Dirs.Explain(err)
		}
	}
	all := recordedAnswers(entries)
	addShown(all, entries, timeline.Options{Hide: runsOptions{Options: o.Options}.hide(), ToShow: "runs show RUN --values"})
	if err := o.settle(all, waiting); err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	columns := []console.Column{{Name: "QUESTION", Keep: true}, {Name: "ASKED"}, {Name: "STATE", Least: len(unanswered)}, {Name: "BY"}, {Name: "RUN", Keep: true}, {Name: "ABOUT"}}
	none, next := "no questions are on record", "toolcell approvals list --watch waits for questions"
	now := time.Now()
	return printRows(o.Options, all, none, next, columns, func(a recordedAnswer) []string {
		return []string{a.ID, timeline.Began(a.AskedAt, now), withReason(a.stateText(), console.OneLine(a.because, reasonWidth)), a.how(), timeline.ShortID(a.Run), a.about()}
	})
}

// settle finds what became of the questions without an answer on record. A process of serve tells; that of
// a command asks at its own terminal, and waits as long as its run does.
func (o approvalsOptions) settle(all []recordedAnswer, waiting []inbox.Question) error {
	open := func(a recordedAnswer) bool { return a.State == string(consent.Pending) }
	first := slices.IndexFunc(all, open)
	if first < 0 {
		return nil
	}
	runs := map[string]bool{}
	for run, err := range o.history().Runs(history.Filter{Status: history.StatusWaiting, From: all[first].AskedAt.Add(-longestWait)}) {
		if err != nil {
			return err
		}
		runs[run.ID] = true
	}
	for i := range all {
		if !open(all[i]) {
			continue
		}
		if !runs[all[i].Run] {
			all[i].State = unanswered
		}
		for _, q := range waiting {
			if q.ID == all[i].ID {
				all[i].State = string(q.State)
			}
		}
	}
	return nil
}

// longestWait is how much earlier than its question a run is looked for.
const longestWait = 48 * time.Hour

// addShown adds what the user was shown to questions, with the arguments of their first calls.
func addShown(all []recordedAnswer, entries []history.Entry, o timeline.Options) {
	byRun := map[string][]history.Entry{}
	for _, e := range entries {
		byRun[e.Run] = append(byRun[e.Run], e)
	}
	type found struct {
		t *timeline.Timeline
		q *timeline.Question
	}
	questions := map[string]found{}
	for run, some := range byRun {
		t := timeline.New(history.Run{ID: run}, some)
		for _, q := range t.Questions {
			questions[q.ID] = found{t, q}
		}
	}
	for i := range all {
		f := questions[all[i].ID]
		all[i].Question = f.t.Shown(f.q, o)
		all[i].Because, all[i].because = f.t.BecauseValue(f.q, o), f.t.Because(f.q, o)
		if c := f.t.FirstCall(f.q); c != nil {
			all[i].arguments = f.t.ArgumentsOf(c, o, timeline.CodeWidth)
		}
	}
}

// recordedAnswers merges the entries of each question.
func recordedAnswers(entries []history.Entry) (all []recordedAnswer) {
	at := map[string]int{}       // by ID of the question
	calls := map[string]string{} // names, by run and number
	key := func(run string, call int) string { return fmt.Sprintf("%s %d", run, call) }
	for _, e := range entries {
		switch b := e.Body.(type) {
		case *record.Verdict:
			calls[key(e.Run, b.Call)] = strings.TrimPrefix(b.Server+"."+b.Tool, ".")
		case *record.Ask:
			i, known := at[b.Question]
			if !known {
				i = len(all)
				at[b.Question] = i
				all = append(all, recordedAnswer{ID: b.Question, Run: e.Run, About: b.About, AskedAt: e.Time})
				for _, call := range b.Calls {
					all[i].Calls = append(all[i].Calls, calls[key(e.Run, call)])
				}
				if b.Server != "" {
					all[i].Calls = []string{strings.TrimSuffix(b.Server+"."+b.Tool, ".")}
				}
			}
			a := &all[i]
			if b.State == "asked" {
				a.State = string(consent.Pending)
				continue
			}
			a.State, a.Scope, a.By, a.Client, a.Terminal, a.PID, a.Remark, a.Decided = b.State, b.Scope, b.By, b.Client, b.Terminal, b.PID, b.Remark, e.Time
			a.Allowed = allowedCalls(b)
		}
	}
	return all
}

func (a recordedAnswer) stateText() string {
	if a.State != string(consent.Approved) {
		return a.State
	}
	if consent.Choice(a.Scope).LastsForConnection() {
		return "approved for the connection"
	}
	all := len(a.Calls)
	if all == mostListed { // or more
		all = 0
	}
	return approvedText(consent.Choice(a.Scope), len(a.Allowed), all)
}

// mostListed is how many calls an entry of the record lists.
const mostListed = 100

// allowedCalls returns which of the calls of a question were allowed, as recordedAnswer has them.
func allowedCalls(b *record.Ask) (places []int) {
	for i, call := range b.Calls {
		if slices.Contains(b.Allowed, call) {
			places = append(places, i+1)
		}
	}
	return places
}

// how says by what means the answer came.
func (a recordedAnswer) how() string {
	return timeline.HowAnswered(&record.Ask{By: a.By, Client: a.Client, Terminal: a.Terminal})
}

func (a recordedAnswer) about() string {
	switch {
	case a.About == "before":
		return "what the run may have before it starts"
	case a.About == "input" && len(a.Calls) > 0:
		return a.Calls[0] + " asks for input"
	case len(a.Calls) == 1:
		return strings.TrimSpace(a.Calls[0] + " " + a.arguments)
	case len(a.Calls) > 1:
		return text.Plural(len(a.Calls), "call") + ": " + strings.TrimSpace(a.Calls[0]+" "+a.arguments) + ", …"
	}
	return a.About
}
