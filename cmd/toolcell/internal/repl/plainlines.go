package repl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
)

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
	text, err = l.next(ctx, mark)
	return text, false, err
}

func (l *plainLines) next(ctx context.Context, mark string) (string, error) {
	if l.show {
		fmt.Fprint(l.s.Out, mark)
	}
	select {
	case text, ok := <-l.read:
		switch {
		case ok && !utf8.ValidString(text):
			return "", console.Invalidf("reading the code: standard input is not text in UTF-8")
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
