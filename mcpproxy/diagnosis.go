package mcpproxy

import (
	"bufio"
	"errors"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"io"
	"log/slog"
	"strings"
	"sync"
)

const (
	diagnosisSize = 8 << 10
	diagnosisLine = 2 << 10 // one line, in the tail and in the log
	diagnosisText = 2 << 10 // what an error text quotes
)

// diagnosis keeps the last of what a server says besides the protocol: its
// stderr, and stray lines on stdout.
type diagnosis struct {
	log    *slog.Logger
	hidden *redactor

	mu   sync.Mutex
	tail []byte
}

// newDiagnosis hides the secrets of the entry: the tail ends in error texts
// that a model reads.
func newDiagnosis(server string, hidden *redactor, log *slog.Logger) *diagnosis {
	return &diagnosis{log: log.With("server", server), hidden: hidden}
}

// readFrom takes in lines until the end of r.
func (d *diagnosis) readFrom(r io.Reader) {
	br := bufio.NewReaderSize(r, diagnosisLine)
	for {
		line, err := br.ReadSlice('\n')
		d.add("stderr", line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// add takes in one line, or a piece of one.
func (d *diagnosis) add(stream string, line []byte) {
	text := text.Printable(d.hidden.hide(string(line[:min(len(line), diagnosisLine)])), diagnosisLine)
	if text == "" {
		return
	}
	d.log.Debug("upstream says", "stream", stream, "line", text)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tail = append(append(d.tail, text...), '\n')
	if over := len(d.tail) - diagnosisSize; over > 0 {
		d.tail = append(d.tail[:0], d.tail[over:]...)
	}
}

// text returns the end of the tail, whole lines where there are any.
func (d *diagnosis) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := strings.TrimSpace(string(d.tail))
	if over := len(text) - diagnosisText; over > 0 {
		text = text[over:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "")
}
