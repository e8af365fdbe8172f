package repl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
)

// readInput gives running code the next line that is typed. The line goes on where
// the code has left its own, such as the text of input().
func (q *prompt) readInput(ctx context.Context) (string, error) {
	line, err := q.readForRun(ctx, func() (mark string) {
		if _, edits := q.input.(*editor); edits {
			mark = console.Plain(q.cursor.takeRest()) // the editor draws the whole line
			if mark != "" {
				fmt.Fprint(q.Streams.Out, "\r")
			}
		}
		return mark
	})
	if errors.Is(err, errAbandoned) {
		return "", run.ErrInterrupted
	}
	if err != nil {
		return "", err
	}
	return line + "\n", nil
}

// readAnswer reads the line by which the user answers a question of a run.
func (q *prompt) readAnswer(ctx context.Context, mark string) (string, error) {
	return q.readForRun(ctx, func() string { return mark })
}

// readForRun reads a line that a run wants, behind the mark, once the run reads no
// other. Ctrl-C makes it errAbandoned.
func (q *prompt) readForRun(ctx context.Context, mark func() string) (string, error) {
	select {
	case q.reading <- struct{}{}:
		defer func() { <-q.reading }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q.setAbandon(func() { cancel(errAbandoned) })
	defer q.setAbandon(nil)
	line, _, err := q.input.line(ctx, mark(), inputLine)
	q.cursor.takeRest()
	return line, err
}

// completionTimeout is how long the first Tab may take, which starts the session.
const completionTimeout = 5 * time.Second

// complete returns what may continue a dotted name. It starts the session if need be.
func (q *prompt) complete(ctx context.Context, dotted string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	if !q.inSession() {
		req := q.request("pass")
		req.File, req.Progress = "", nil
		r := q.Run(ctx, req)
		if r.IsError() {
			return nil // the first block says why
		}
		q.last = r
	}
	return q.Complete(ctx, q.request("pass"), dotted)
}

// A cursor knows the line that was written last and not ended: a prompt begins
// one of its own, and a line of input goes on with it.
type cursor struct {
	mu   sync.Mutex
	rest []byte // its end, if it is long
}

// maxRest bounds the kept part of a line, in bytes.
const maxRest = 1 << 10

// Write moves the cursor behind what is written.
func (c *cursor) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, b...)
	c.rest = c.rest[bytes.LastIndexByte(c.rest, '\n')+1:]
	c.rest = bytes.Clone(c.rest[max(0, len(c.rest)-maxRest):])
	return len(b), nil
}

// takeRest returns the line that was not ended; something else ends it.
func (c *cursor) takeRest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := string(c.rest)
	c.rest = nil
	return rest
}

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
	defer contain.Error("reading the code from standard input", &l.err)
	lines := bufio.NewScanner(l.s.In)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		l.read <- lines.Text()
	}
	if l.err = lines.Err(); l.err != nil {
		l.err = fmt.Errorf("reading the code from standard input: %w", l.err)
	}
}

func (l *plainLines) line(ctx context.Context, mark string, _ lineKind) (text string, pasted bool, err error) {
	if l.show {
		fmt.Fprint(l.s.Out, mark)
	}
	select {
	case text, ok := <-l.read:
		switch {
		case ok && !utf8.ValidString(text):
			return "", false, console.Invalidf("reading the code: standard input is not text in UTF-8")
		case ok:
			return text, false, nil
		}
		return "", false, cmp.Or(l.err, io.EOF)
	case <-l.abandoned:
		fmt.Fprintln(l.s.Out)
		return "", false, errAbandoned
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
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
