package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxTail       = 8 << 10
	maxTailLine   = 2 << 10 // one line, in the tail and in the log
	maxQuotedTail = 2 << 10 // what an error text quotes
)

// outputTail keeps the last of what a server writes besides the protocol: its
// stderr, and stray lines on stdout.
type outputTail struct {
	log    *slog.Logger
	hidden *redact.Redactor

	mu   sync.Mutex
	tail []byte
}

// newOutputTail hides the secrets of the entry: the tail ends in error texts
// that a model reads.
func newOutputTail(server string, hidden *redact.Redactor, log *slog.Logger) *outputTail {
	return &outputTail{log: log.With("server", server), hidden: hidden}
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
