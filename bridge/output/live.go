package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds of the lines that are passed on during a run.
const (
	LiveInterval = 500 * time.Millisecond
	maxLive      = 5   // lines per report, the last ones
	maxLiveLine  = 200 // bytes of one
)

// A liveOutput passes on printed lines to a client that follows the progress:
// never often, never much, and nothing from a run that ends before the first
// report. Writes to it never wait for the client.
type liveOutput struct {
	tell func(text string)

	mu    sync.Mutex
	begun []byte   // a line that has not ended
	lines []string // the last ones that were not passed on yet
	more  int      // before those
	timer *time.Timer
}

// Write takes in output. A carriage return ends a line too, since progress bars
// use it.
func (l *liveOutput) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			l.begin(p)
			break
		}
		l.begin(p[:end])
		l.endLine()
		p = p[end+1:]
	}
	if len(l.lines) > 0 && l.timer == nil {
		l.timer = time.AfterFunc(LiveInterval, contain.Func("showing output as it comes", l.flush))
	}
	return n, nil
}

func (l *liveOutput) begin(p []byte) {
	// Some more than can be shown, so that a cut shows.
	l.begun = append(l.begun, p[:min(len(p), maxLiveLine+1-min(len(l.begun), maxLiveLine+1))]...)
}

func (l *liveOutput) endLine() {
	line := text.OneLine(string(trimEnd(l.begun)), len(l.begun))
	l.begun = l.begun[:0]
	if line == "" {
		return
	}
	if len(line) > maxLiveLine {
		line = strings.ToValidUTF8(line[:maxLiveLine], "") + "…"
	}
	if len(l.lines) == maxLive {
		l.lines, l.more = append(l.lines[:0], l.lines[1:]...), l.more+1
	}
	l.lines = append(l.lines, line)
}

// flush reports the lines that have come since the last time.
func (l *liveOutput) flush() {
	l.tell(l.take())
}

// take returns the lines that have come since the last time.
func (l *liveOutput) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := strings.Join(l.lines, "\n")
	if l.more > 0 {
		told = fmt.Sprintf("[%s before]\n%s", text.Plural(l.more, "line"), told)
	}
	l.lines, l.more, l.timer = l.lines[:0], 0, nil
	return told
}

// Follow returns a writer that passes the lines written to it on to tell, and
// everything to out as well, unless that is nil.
func Follow(out io.Writer, tell func(text string)) io.Writer {
	live := &liveOutput{tell: tell}
	if out == nil {
		return live
	}
	return io.MultiWriter(out, live)
}
