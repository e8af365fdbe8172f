package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxTail       = 8 << 10
	maxTailLine   = 2 << 10 // one line, in the tail and in the log
	maxQuotedTail = 2 << 10 // what an error text quotes
	maxReason     = 300     // the line of it that a short one quotes
)

// An OutputError is an error of a server that ends with the last lines it wrote that
// are not messages of the protocol. WithoutOutput removes them for those who may not
// see them.
type OutputError struct {
	err            error
	server, output string
}

const outputMark = "; its stderr ended: "

func (e *OutputError) Error() string { return e.err.Error() + outputMark + e.output }
func (e *OutputError) Unwrap() error { return e.err }

// HasOutput reports whether an error has what its server wrote.
func HasOutput(err error) bool {
	var out *OutputError
	return errors.As(err, &out)
}

// WithoutOutput returns an error without what its server wrote, if there is any of
// that in its text.
func WithoutOutput(err error) error {
	var out *OutputError
	if !errors.As(err, &out) {
		return err
	}
	return &shortError{fmt.Sprintf("%s; its stderr is shown by: toolcell servers check %s", out.before(err), text.ShellWord(out.server)), err}
}

// ShortOutput returns an error with the line of what its server wrote that gives the
// reason, if there are several.
func ShortOutput(err error) error {
	var out *OutputError
	if !errors.As(err, &out) || !strings.Contains(out.output, "\n") {
		return err
	}
	return &shortError{fmt.Sprintf("%s%s%s (all of it is shown by: toolcell servers check %s)",
		out.before(err), outputMark, text.Printable(reasonIn(out.output), maxReason), text.ShellWord(out.server)), err}
}

// before returns the text of an error that e is in, up to the output.
func (e *OutputError) before(err error) string {
	txt, _, found := strings.Cut(err.Error(), outputMark)
	if !found { // a secret in the mark was replaced
		txt = e.err.Error()
	}
	return txt
}

// saysReason finds lines that give a reason: the last line of a Python traceback, but
// not that of one of Node.js, which is a version.
var saysReason = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\S*(?:error|exception|exit)\b|\b(?:error|exception|fatal|panic|cannot|failed|missing|required|not found|no such)\b`)
})

// reasonIn returns the last line of a server's output that gives a reason, or just the
// last one.
func reasonIn(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, line := range slices.Backward(lines) {
		indented := strings.TrimLeft(line, " \t") != line
		if !indented && saysReason().MatchString(line) {
			return line
		}
	}
	return lines[len(lines)-1]
}

// A shortError has a text in place of its error's own.
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

	mu   sync.Mutex
	tail []byte
}

// newOutputTail hides the secrets of the entry: the tail ends in error texts
// that a model reads.
func newOutputTail(server string, hidden *redact.Redactor, log *slog.Logger) *outputTail {
	return &outputTail{server: server, log: log.With("server", server), hidden: hidden}
}

// readFrom takes in lines until the end of r.
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

// add takes in one line, or a piece of one.
func (t *outputTail) add(stream string, line []byte) {
	text := text.Printable(t.hidden.Text(string(line[:min(len(line), maxTailLine)])), maxTailLine)
	if text == "" {
		return
	}
	t.log.Debug("upstream says", "stream", stream, "line", text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail = append(append(t.tail, text...), '\n')
	if over := len(t.tail) - maxTail; over > 0 {
		t.tail = append(t.tail[:0], t.tail[over:]...)
	}
}

// appendTo adds the tail to an error, if there is one.
func (t *outputTail) appendTo(err error) error {
	if tail := t.last(); tail != "" {
		return &OutputError{err, t.server, tail}
	}
	return err
}

// last returns the end of the tail, whole lines where there are any.
func (t *outputTail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.tail))
	if over := len(text) - maxQuotedTail; over > 0 {
		text = text[over:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "")
}
