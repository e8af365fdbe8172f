package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// A readLine shows a mark and reads the line that is typed behind it.
type readLine func(ctx context.Context, mark string) (string, error)

// A terminalAsker asks the user of exec what runs ask, and that of servers call about its
// call.
type terminalAsker struct {
	s        *console.Streams
	progress *console.Progress // makes way
	turn     chan struct{}     // of the one who reads from the terminal: the code's input(), or a question
}

func newTerminalAsker(s *console.Streams, progress *console.Progress) *terminalAsker {
	return &terminalAsker{s: s, progress: progress, turn: make(chan struct{}, 1)}
}

// canAsk reports whether a user can answer: a terminal controls the process, and one of the
// streams is a terminal. A program that captures all streams would hide the question.
func (a *terminalAsker) canAsk() bool {
	if !console.Terminal(a.s.In) && !console.Terminal(a.s.Out) && !console.Terminal(a.s.Err) {
		return false
	}
	terminal, err := console.OpenTerminal()
	if err != nil {
		return false
	}
	return terminal.Close() == nil
}

// ask asks at the terminal that controls the process, whatever its streams are: standard
// input may be the code's.
func (a *terminalAsker) ask(ctx context.Context, q consent.Question) consent.Answer {
	defer a.take(ctx)()
	terminal, err := console.OpenTerminal()
	if err != nil {
		return noAnswer(&q)
	}
	defer terminal.Close() // ends the reading
	a.progress.Hide()
	if console.DropTyped(terminal) != nil {
		return noAnswer(&q)
	}
	return askQuestion(ctx, &q, terminal, func(ctx context.Context, mark string) (string, error) {
		if _, err := io.WriteString(terminal, mark); err != nil {
			return "", err
		}
		return console.ReadLine(ctx, terminal)
	})
}

// askAtPrompt asks through the prompt of exec -i, which reads all keys.
func (a *terminalAsker) askAtPrompt(ctx context.Context, q consent.Question, read func(ctx context.Context, mark string) (string, error)) consent.Answer {
	a.progress.Hide()
	return askQuestion(ctx, &q, a.s.Out, read)
}

// take waits until nothing else reads from the terminal.
func (a *terminalAsker) take(ctx context.Context) (release func()) {
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn }
	case <-ctx.Done():
		return func() {}
	}
}

// letters are the keys of the choices.
var letters = []struct {
	letter string
	choice consent.Choice
}{{"y", consent.ForCall}, {"r", consent.ForRun}, {"o", consent.Believe}, {"n", consent.Deny}, {"s", consent.Stop}}

// showAll is typed to see arguments that are cut.
const showAll = "a"

// maxTries bounds the lines that are no answer.
const maxTries = 10

// askQuestion shows a question and reads the answer. The end of the input and Ctrl-C stop
// the run. After the question has expired there is no answer.
func askQuestion(ctx context.Context, q *consent.Question, out io.Writer, read readLine) consent.Answer {
	if !q.ExpiresAt.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, q.ExpiresAt)
		defer cancel()
	}
	fmt.Fprintf(out, "\n%s\n", console.PlainText(q.TerminalText()))
	if q.Form != nil {
		return askForm(ctx, q.Form, out, read)
	}
	mark := writeChoices(out, q)
	for range maxTries {
		line, err := read(ctx, mark)
		if err != nil {
			fmt.Fprintln(out)
			return noAnswer(q)
		}
		if strings.ToLower(strings.TrimSpace(line)) == showAll {
			fmt.Fprintln(out, console.PlainText(q.WholeTerminalText()))
			continue
		}
		switch answer, err := typedAnswer(q, line); {
		case err != nil:
			fmt.Fprintf(out, "  %v\n", err)
		case answer.Choice != "":
			return answer
		}
	}
	return noAnswer(q)
}

// writeChoices writes what can be typed, a line for each, and returns the mark before what is typed.
func writeChoices(out io.Writer, q *consent.Question) (mark string) {
	var offered []string
	for _, l := range letters {
		if !offers(q, l.choice) {
			continue
		}
		title := q.Title(l.choice)
		if l.choice == consent.Deny && !q.Command {
			title += fmt.Sprintf("; %s REASON also tells the code why", l.letter)
		}
		fmt.Fprintf(out, "  %s  %s\n", l.letter, title)
		offered = append(offered, l.letter)
	}
	if q.WholeTerminalText() != q.TerminalText() {
		fmt.Fprintf(out, "  %s  show all arguments\n", showAll)
		offered = append(offered, showAll)
	}
	mark = strings.Join(offered, "/")
	if example := q.CallsExample(); example != "" {
		fmt.Fprintf(out, "  numbers, such as %s: allow only these calls, and deny the others\n", example)
		mark += " or numbers"
	}
	return "Your answer [" + mark + "]: "
}

// typedAnswer reads a line: a letter, the letter of a denial with the reason behind it, or numbers of
// calls. Anything else is no answer, with an error if it looks like one.
func typedAnswer(q *consent.Question, line string) (a consent.Answer, err error) {
	a.By = terminalAnswer
	typed := strings.TrimSpace(line)
	if typed != "" && typed[0] >= '0' && typed[0] <= '9' && q.Choosable() > 0 {
		if a.Calls, err = q.ParseCalls(typed); err != nil {
			return consent.Answer{}, err
		}
		a.Choice = consent.ForCall
		return a, nil
	}
	letter, words, _ := strings.Cut(typed, " ")
	for _, l := range letters {
		if strings.ToLower(letter) == l.letter && offers(q, l.choice) && (words == "" || l.choice == consent.Deny) {
			a.Choice = l.choice
		}
	}
	if a.Choice == "" {
		return consent.Answer{}, nil
	}
	if a.Because, err = consent.Because(words); err != nil {
		return consent.Answer{}, err
	}
	return a, nil
}

// terminalAnswer is consent.Answer.By of answers that are typed.
const terminalAnswer = "terminal"

func offers(q *consent.Question, choice consent.Choice) bool {
	return slices.Contains(q.Choices(), choice)
}

// noAnswer ends the run that asks, or else denies.
func noAnswer(q *consent.Question) consent.Answer {
	if q.Form != nil || offers(q, consent.Stop) {
		return stopped()
	}
	return consent.Answer{Choice: consent.Deny, By: terminalAnswer}
}
