package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/peterh/liner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/sys/unix"
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
	typed   chan typedLine // gets the line that is being typed; nil if none is
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
	// liner reads keys from os.Stdin as it is now, and asks descriptor 0 for
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
var dottedName = text.Pattern(`(?:^|[^\pL\pN_.)\]}"'])([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*\.?)$`)

// completeLine handles Tab: it indents, or completes a name.
func completeLine(line string, at int, complete func(dotted string) []string) (head string, completions []string, tail string) {
	runes := []rune(line)
	head, tail = string(runes[:at]), string(runes[at:])
	if strings.TrimSpace(head) == "" {
		return head, []string{"    "}, tail
	}
	found := dottedName().FindStringSubmatch(head)
	if found == nil {
		return head, nil, tail
	}
	last := found[1][strings.LastIndexByte(found[1], '.')+1:]
	for _, name := range complete(found[1]) {
		if identifier().MatchString(name) && strings.HasPrefix(name, last) { // the sandbox may say anything
			completions = append(completions, name)
		}
	}
	return strings.TrimSuffix(head, last), completions, tail
}

var identifier = text.Pattern(`^[\pL_][\pL\pN_]*$`)

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

// keys filters the keys of a terminal with bracketed paste on their way to the editor. A paste
// arrives there as if it were typed, without keys that do something; keys remembers which line
// ends were pasted.
type keys struct {
	typed   func() // called for what comes
	pasting bool
	text    bool   // the line that is being pasted has some
	blank   bool   // what was pasted last is an empty line
	last    byte   // that was pasted
	held    []byte // the beginning of a mark, at the end of what was read

	mu   sync.Mutex
	ends []bool // of lines that the editor has not given yet: pasted or not
}

// The marks around a paste.
var pasteBegin, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// copy passes on keys until either end is gone.
func (k *keys) copy(w io.WriteCloser, r io.Reader) {
	defer contain.Recover("reading keys", nil)
	defer w.Close()
	b := make([]byte, 4096)
	for {
		n, err := r.Read(b)
		if err != nil {
			return
		}
		k.typed()
		if _, err := w.Write(k.pass(b[:n])); err != nil {
			return
		}
	}
}

// pass returns the keys that the editor gets.
func (k *keys) pass(in []byte) (out []byte) {
	in = append(k.held, in...)
	k.held = nil
	for len(in) > 0 {
		mark := pasteBegin
		if k.pasting {
			mark = pasteEnd
		}
		if bytes.HasPrefix(in, mark) {
			in = in[len(mark):]
			k.switchPasting()
			continue
		}
		// A lone Escape is a key; in a paste it is nothing.
		if len(in) < len(mark) && (k.pasting || len(in) > 1) && bytes.HasPrefix(mark, in) {
			k.held = bytes.Clone(in)
			return out
		}
		out = k.add(out, in[0])
		in = in[1:]
	}
	return out
}

// switchPasting begins or ends a paste. An empty line at its end is meant as one.
func (k *keys) switchPasting() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.ends); k.pasting && k.blank && n > 0 {
		k.ends[n-1] = false
	}
	k.pasting, k.text, k.blank, k.last = !k.pasting, false, false, 0
}

// add passes on one byte.
func (k *keys) add(out []byte, c byte) []byte {
	end := c == '\r' || c == '\n'
	if k.pasting {
		before := k.last
		k.last = c
		if c == '\n' && before == '\r' {
			return out
		}
		k.blank = end && !k.text
		k.text = !end && (k.text || c > ' ')
	}
	switch {
	case end:
		k.mu.Lock()
		k.ends = append(k.ends, k.pasting)
		k.mu.Unlock()
	case !k.pasting:
	case c == '\t':
		return append(out, "    "...)
	case c < ' ' || c == 0x7f:
		return out
	}
	return append(out, c)
}

// lineEnd reports whether the end of the line that the editor has given was pasted.
func (k *keys) lineEnd() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ends) == 0 {
		return false
	}
	pasted := k.ends[0]
	k.ends = k.ends[1:]
	return pasted
}
