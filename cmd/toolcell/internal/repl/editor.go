package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/peterh/liner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// canEdit reports whether the terminal can show a line that is edited.
func canEdit() bool { return liner.TerminalSupported() }

// An editor lets a person edit lines, with the keys of a shell, and bring back
// earlier ones.
type editor struct {
	state   *liner.State
	history *history
}

func newEditor(historyFile string) *editor {
	e := &editor{state: liner.NewLiner(), history: openHistory(historyFile)}
	e.state.SetCtrlCAborts(true)
	e.state.SetMultiLineMode(true)
	e.state.SetWordCompleter(indent)
	for _, line := range e.history.lines {
		e.state.AppendHistory(line)
	}
	return e
}

// indent is all that Tab does: nothing is known here of Python's names.
func indent(line string, at int) (head string, completions []string, tail string) {
	runes := []rune(line)
	if head = string(runes[:at]); strings.TrimSpace(head) != "" {
		return head, nil, ""
	}
	return head, []string{"    "}, string(runes[at:])
}

func (e *editor) line(ctx context.Context, mark string) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	typed := make(chan outcome, 1)
	go func() {
		text, err := e.state.Prompt(mark)
		typed <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		e.close() // the terminal is as it was; the program is about to end
		fmt.Fprintln(os.Stdout)
		return "", context.Cause(ctx)
	case o := <-typed:
		switch {
		case errors.Is(o.err, liner.ErrPromptAborted):
			return "", errAbandoned
		case o.err == nil && strings.TrimSpace(o.text) != "":
			e.state.AppendHistory(o.text)
			e.history.add(o.text)
		}
		return o.text, o.err
	}
}

func (e *editor) close() { _ = e.state.Close() } // nothing can be done about a terminal that is gone

// plainLines reads lines from a pipe or a file, or from a terminal that cannot
// edit them.
type plainLines struct {
	s         *console.Streams
	show      bool // the marks
	read      chan string
	abandoned chan struct{}
	err       error // once read is closed
}

func newPlainLines(s *console.Streams, show bool) *plainLines {
	l := &plainLines{s: s, show: show, read: make(chan string), abandoned: make(chan struct{}, 1)}
	go l.fill()
	return l
}

// maxLine bounds one line, in bytes; the run itself allows less, and says how much.
const maxLine = 16 << 20

// fill reads on until the end of the input, or of the program.
func (l *plainLines) fill() {
	defer close(l.read)
	lines := bufio.NewScanner(l.s.In)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		l.read <- lines.Text()
	}
	if l.err = lines.Err(); l.err != nil {
		l.err = fmt.Errorf("reading the code from standard input: %w", l.err)
	}
}

func (l *plainLines) line(ctx context.Context, mark string) (string, error) {
	if l.show {
		fmt.Fprint(l.s.Out, mark)
	}
	select {
	case text, ok := <-l.read:
		switch {
		case ok && !utf8.ValidString(text):
			return "", &console.ExitError{Code: console.ExitUsage, Err: errors.New("reading the code: standard input is not text in UTF-8")}
		case ok:
			return text, nil
		case l.err != nil:
			return "", l.err
		}
		return "", io.EOF
	case <-l.abandoned:
		fmt.Fprintln(l.s.Out)
		return "", errAbandoned
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// abandon ends the reading of the line that is being typed.
func (l *plainLines) abandon() {
	select {
	case l.abandoned <- struct{}{}:
	default: // it is abandoned already
	}
}

func (l *plainLines) close() {}
