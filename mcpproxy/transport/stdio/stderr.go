package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

const (
	maxTail       = 8 << 10
	maxTailLine   = 2 << 10 // one line, in the tail and in the log
	maxQuotedTail = 2 << 10 // what an error text quotes
	maxReason     = 300     // the line of it that a short one quotes
	maxIndent     = 16      // before a line
)

// An OutputError is an error of a server that ends with the last lines it wrote that
// are not messages of the protocol. WithoutOutput removes them for those who may not
// see them.
type OutputError struct {
	err           error
	output, where string // where is what shows all of it
}

const outputMark = "; its stderr ended: "

func (e *OutputError) Error() string { return e.err.Error() + outputMark + e.output }
func (e *OutputError) Unwrap() error { return e.err }

// HasOutput reports whether an error quotes the output of its server, or has an explanation,
// whose names may be the server's.
func HasOutput(err error) bool {
	var out *OutputError
	return errors.As(err, &out) || explanationOf(err) != ""
}

// WithoutOutput returns an error whose text has nothing of what HasOutput finds.
func WithoutOutput(err error) error {
	var out *OutputError
	if !errors.As(err, &out) {
		return withoutExplanation(err)
	}
	return &shortError{fmt.Sprintf("%s; its stderr is shown by: %s", out.before(err), out.where), err}
}

// ShortOutput returns an error that quotes only the line of the output that gives the
// reason, if there are several lines.
func ShortOutput(err error) error {
	var out *OutputError
	if !errors.As(err, &out) || !strings.Contains(out.output, "\n") {
		return err
	}
	return &shortError{fmt.Sprintf("%s%s%s (all of it is shown by: %s)%s",
		out.before(err), outputMark, text.Printable(reasonIn(out.output), maxReason), out.where, explanationOf(err)), err}
}

// Reason returns an error that quotes only the line of the output that gives the reason, and
// all lines, without escapes, to be shown beside it. There are none if the error quotes all
// of the output.
func Reason(err error) (lines []string, reason error) {
	var out *OutputError
	if !errors.As(err, &out) || !strings.Contains(out.output, "\n") {
		return nil, err
	}
	said := out.before(err) + "; its stderr says: " + text.Printable(reasonIn(out.output), maxReason)
	return strings.Split(out.output, "\n"), &shortError{said + explanationOf(err), err}
}

// Output returns the lines of its server that an error quotes, nil if it quotes none.
func Output(err error) []string {
	if out, ok := errors.AsType[*OutputError](err); ok {
		return strings.Split(out.output, "\n")
	}
	return nil
}

// before returns the text of an error that e is in, up to the output.
func (e *OutputError) before(err error) string {
	txt, _, found := strings.Cut(err.Error(), outputMark)
	if !found { // a secret in the mark was replaced
		txt = e.err.Error()
	}
	return txt
}

// A shortError is an error with another text.
type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }

// outputTail keeps the last lines of a server that are not messages of the protocol:
// its stderr, and stray lines on stdout.
type outputTail struct {
	server string
	log    *slog.Logger
	hidden *redact.Redactor

	mu     sync.Mutex
	tail   []byte
	cut    bool // there was more before it
	served bool // the server has worked: another start would not show what it wrote
}

// newOutputTail hides the secrets of the entry: the tail ends in error texts
// that a model reads.
func newOutputTail(server string, hidden *redact.Redactor, log *slog.Logger) *outputTail {
	return &outputTail{server: server, log: log.With("server", server), hidden: hidden}
}

// readFrom adds lines until the end of r.
func (t *outputTail) readFrom(r io.Reader) {
	br := bufio.NewReaderSize(r, maxTailLine)
	for {
		line, err := br.ReadSlice('\n')
		t.add("stderr", line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// add adds one line, or a piece of one.
func (t *outputTail) add(stream string, line []byte) {
	raw := text.Clean(t.hidden.Text(string(line[:min(len(line), maxTailLine)])))
	text := text.Printable(t.hidden.Text(raw), maxTailLine) // again: escapes may have been within a secret
	if text == "" {
		return
	}
	t.log.Debug("upstream says", "stream", stream, "line", text)
	text = indentOf(raw) + text
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail = append(append(t.tail, text...), '\n')
	if over := len(t.tail) - maxTail; over > 0 {
		t.tail, t.cut = append(t.tail[:0], t.tail[over:]...), true
	}
}

// indentOf returns the spaces before a line, which tell a traceback's frames from its
// error.
func indentOf(line string) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	return strings.Repeat(" ", min(len(line)-len(strings.TrimLeft(line, " ")), maxIndent))
}

// appendTo adds the tail to an error: it usually says why. If there is one, it returns an
// OutputError.
func (t *outputTail) appendTo(err error) error {
	tail := t.last()
	if tail == "" {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served {
		return &OutputError{err, tail, "the log, with TOOLCELL_LOG_LEVEL=DEBUG"}
	}
	return &OutputError{err, tail, "toolcell servers check " + text.ShellWord(t.server)}
}

// last returns the end of the tail, in whole lines if possible.
func (t *outputTail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimRight(string(t.tail), "\n")
	if len(text) > maxQuotedTail {
		text = withoutHalfLine(text[len(text)-maxQuotedTail:])
	}
	return strings.ToValidUTF8(text, "")
}

// withoutHalfLine returns a text without its first line, unless that is all of it.
func withoutHalfLine(text string) string {
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return rest
	}
	return text
}

// lines returns all that is kept.
func (t *outputTail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimRight(string(t.tail), "\n")
	if t.cut {
		text = withoutHalfLine(text)
	}
	if text == "" {
		return nil
	}
	return strings.Split(strings.ToValidUTF8(text, ""), "\n")
}
