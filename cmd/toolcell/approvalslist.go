package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

func approvalsList(ctx context.Context, o approvalsOptions) error {
	switch {
	case o.Watch && o.All:
		return console.Usagef("give --all without --watch")
	case o.Notify && !o.Watch:
		return console.Usagef("give --notify with --watch: it tells of questions that come while the command runs")
	case o.All:
		return approvalsAll(o)
	case o.Watch:
		return watchApprovals(ctx, o)
	}
	all, err := listApprovals(o.Options)
	if err != nil {
		return err
	}
	columns := []console.Column{{Name: "QUESTION", Keep: true}, {Name: "STATE"}, {Name: "LEFT", Right: true}, {Name: "ABOUT"}}
	none, next := "no questions are waiting", "toolcell approvals list --watch waits for questions"
	err = printRows(o.Options, all, none, next, columns, func(q inbox.Question) []string {
		return []string{q.ID, withReason(stateText(q), console.OneLine(q.Because, reasonWidth)), timeLeft(q, time.Now()), aboutText(q)}
	})
	if err != nil || o.JSON {
		return err
	}
	waits := -1
	for i, q := range all {
		if q.State == consent.Pending && (waits < 0 || len(q.Choices) > 0) {
			waits = i
		}
	}
	if waits >= 0 {
		console.Hint(o.Err, answerHint(all[waits]))
	}
	return nil
}

// answerHint says how a question that waits is answered.
func answerHint(q inbox.Question) string {
	how := fmt.Sprintf("toolcell approvals approve %s allows it; deny refuses it", q.ID)
	if len(q.Choices) == 0 { // a server asks
		how = fmt.Sprintf("the form in your client answers %s; toolcell approvals deny %[1]s refuses it", q.ID)
	}
	return how + ", deny --stop also ends the run, show prints all of it"
}

func listApprovals(o Options) ([]inbox.Question, error) {
	all, err := openApprovals(o.Settings)
	if err != nil {
		return nil, err
	}
	defer all.close()
	return all.questions(o.Streams), nil
}

// watchEvery is the interval between two lists. Each asks new processes too.
const watchEvery = 300 * time.Millisecond

// watchApprovals prints new questions and new answers until it is interrupted.
func watchApprovals(ctx context.Context, o approvalsOptions) error {
	known := map[string]consent.State{}
	notify := func([]inbox.Question) {}
	if o.Notify {
		n, err := newNotifier(ctx, o.Streams)
		if err != nil {
			return err
		}
		defer n.close()
		notify = n.look
	}
	for first := true; ; first = false {
		all, err := listApprovals(o.Options)
		if err != nil {
			return err
		}
		var news []inbox.Question
		for _, q := range all {
			if known[q.ID] != q.State {
				news, known[q.ID] = append(news, q), q.State
			}
		}
		switch {
		case o.JSON && (len(news) > 0 || first):
			err = console.PrintJSON(o.Streams, all)
		case !o.JSON:
			printNews(o.Streams, news)
			err = o.WriteError()
		}
		if err != nil {
			return err
		}
		notify(all)
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// printNews prints a line for each question.
func printNews(s *console.Streams, news []inbox.Question) {
	for _, q := range news {
		about := console.OneLine(aboutText(q), descriptionWidth)
		state := withReason(stateText(q), console.OneLine(q.Because, reasonWidth))
		fmt.Fprintf(s.Stdout(), "%s  %s  %s  %s\n", time.Now().Format(time.TimeOnly), q.ID, state, about)
	}
}

// stateText returns the state of a question, with the scope of an approval. One for a connection that
// has ended, or for which too much was allowed already, was one of the calls alone.
func stateText(q inbox.Question) string {
	switch {
	case q.State != consent.Approved:
		return string(q.State)
	case q.Choice.LastsForConnection() && q.Holds:
		return "allowed for this connection"
	}
	return approvedText(q.Choice, len(q.Allowed), len(q.Calls))
}

// approvedText says what was approved: some of the calls if some is not 0. All is 0 if it is not known.
func approvedText(choice consent.Choice, some, all int) string {
	switch {
	case choice == consent.ForRun:
		return "approved for the run"
	case choice == consent.Believe:
		return "approved, and counts as only reading"
	case some > 0 && all == 0:
		return fmt.Sprintf("approved, %d of its calls", some)
	case some > 0:
		return fmt.Sprintf("approved, %d of %s", some, text.Plural(all, "call"))
	}
	return string(consent.Approved)
}

// reasonWidth bounds what the user says, in columns, in a line about a question.
const reasonWidth = 40

// withReason adds what the user says to a state.
func withReason(state, because string) string {
	if because == "" {
		return state
	}
	return state + ": " + because
}

func timeLeft(q inbox.Question, now time.Time) string {
	if q.State != consent.Pending {
		return ""
	}
	return text.Duration(max(0, q.ExpiresAt.Sub(now)).Round(time.Second))
}

// aboutText returns the subject of a question, on one line.
func aboutText(q inbox.Question) string {
	switch {
	case q.Subject != "":
		return q.Subject
	case q.Message != "":
		return fmt.Sprintf("%s asks: %s", q.Server, q.Message)
	case len(q.Calls) == 0:
		return fmt.Sprintf("%s.%s %s", q.Server, q.Tool, q.Arguments)
	}
	return fmt.Sprintf("%s: %s.%s %s, …", text.Plural(len(q.Calls), "call"), q.Calls[0].Server, q.Calls[0].Tool, q.Calls[0].Arguments)
}
