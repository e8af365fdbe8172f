package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
)

// canEdit reports whether the terminal can show a line that is edited.
// One of unknown width, as a container's may be, cannot.
func canEdit(out *os.File) bool {
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	return err == nil && size.Col > 0 && liner.TerminalSupported()
}

// An editor lets a person edit lines, with the keys of a shell, and bring back
// earlier ones.
type editor struct {
	state   *liner.State
	history *history
	keys    *keys
	send    io.Writer      // of keys to the editor
	typed   chan typedLine // what is being typed will come here; nil if nothing is
	unread  bool           // the key of abandon came too late for its line
}

// A typedLine is a line, or why there is none.
type typedLine struct {
	text string
	err  error
}

// Bracketed paste (xterm's control sequences): the terminal marks what is pasted.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

// newEditor begins to edit lines. Complete returns what may continue a dotted name;
// keyTyped is called for each key, before it has an effect.
func newEditor(historyFile string, complete func(dotted string) []string, keyTyped func()) (*editor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for keys: %w", err)
	}
	e := &editor{history: openHistory(historyFile), keys: &keys{typed: keyTyped}, send: w}
	// liner reads keys from what is standard input now, and asks descriptor 0 for
	// everything else. It does not know pastes.
	terminal := os.Stdin
	os.Stdin = r
	e.state = liner.NewLiner()
	os.Stdin = terminal
	go e.keys.copy(w, terminal)
	e.state.SetCtrlCAborts(true)
	e.state.SetMultiLineMode(true)
	e.state.SetTabCompletionStyle(liner.TabPrints)
	e.state.SetWordCompleter(func(line string, at int) (string, []string, string) {
		return completeLine(line, at, complete)
	})
	for _, line := range e.history.lines {
		e.state.AppendHistory(line)
	}
	_, _ = os.Stdout.WriteString(pasteOn) // liner writes there too
	return e, nil
}

// dottedName finds the name that is being typed at the end of a line, unless it
// belongs to an expression such as a call.
var dottedName = regexp.MustCompile(`(?:^|[^\pL\pN_.)\]}"'])([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*\.?)$`)

// completeLine is what Tab does: it indents, or completes a name.
func completeLine(line string, at int, complete func(dotted string) []string) (head string, completions []string, tail string) {
	runes := []rune(line)
	head, tail = string(runes[:at]), string(runes[at:])
	if strings.TrimSpace(head) == "" {
		return head, []string{"    "}, tail
	}
	found := dottedName.FindStringSubmatch(head)
	if found == nil {
		return head, nil, tail
	}
	last := found[1][strings.LastIndexByte(found[1], '.')+1:]
	for _, name := range complete(found[1]) {
		if identifier.MatchString(name) && strings.HasPrefix(name, last) { // the sandbox may say anything
			completions = append(completions, name)
		}
	}
	return strings.TrimSuffix(head, last), completions, tail
}

var identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

func (e *editor) line(ctx context.Context, mark string, kind lineKind) (text string, pasted bool, err error) {
	if e.typed == nil {
		e.typed = make(chan typedLine, 1)
		go func(typed chan<- typedLine, unread bool) {
			var l typedLine
			defer func() { typed <- l }()
			defer contain.Error("reading a line", &l.err)
			l.text, l.err = e.state.Prompt(mark)
			if unread && errors.Is(l.err, liner.ErrPromptAborted) {
				l.text, l.err = e.state.Prompt(mark)
			}
		}(e.typed, e.unread)
		e.unread = false
	}
	select {
	case <-ctx.Done():
		if kind == inputLine {
			e.abandon()
		}
		return "", false, context.Cause(ctx)
	case l := <-e.typed:
		e.typed = nil
		switch {
		case errors.Is(l.err, liner.ErrPromptAborted):
			return "", false, errAbandoned
		case l.err != nil:
			return "", false, l.err
		case kind == codeLine && strings.TrimSpace(l.text) != "":
			e.state.AppendHistory(l.text)
			e.history.add(l.text)
		}
		return l.text, e.keys.lineEnd(), nil
	}
}

// abandon ends the line that is being typed as Ctrl-C does. The code that wanted it
// has ended, and the next line has another mark.
func (e *editor) abandon() {
	_, _ = e.send.Write([]byte{ctrlC}) // it fails if the terminal is gone, which ends the line too
	l := <-e.typed
	e.typed, e.unread = nil, !errors.Is(l.err, liner.ErrPromptAborted)
}

// ctrlC is the key.
const ctrlC = 3

func (e *editor) close() {
	_, _ = os.Stdout.WriteString(pasteOff)
	_ = e.state.Close() // nothing can be done about a terminal that is gone
	if e.typed != nil {
		_, _ = os.Stdout.WriteString("\n") // the program is about to end, in the middle of a line
	}
}
