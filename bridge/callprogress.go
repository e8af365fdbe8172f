package bridge

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// progressEvery is how often a run passes on what servers say of its calls;
// some say it thousands of times a second.
const progressEvery = 200 * time.Millisecond

// progress passes on how one run goes on, one word at a time: what servers say
// of its calls, and what it prints.
type progress struct {
	tell func(done, total int64, text string) // may be nil

	mu   sync.Mutex
	last time.Time
	over bool
}

// say passes on a text, unless the run is over.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.tell(0, 0, text)
	}
}

// end lets nothing be said from now on, and waits until what is being said was:
// "Progress notifications MUST stop after completion." (MCP specification,
// Progress)
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// progressOf gives the function that hears of one call, nil if nobody listens.
func (t *talk) progressOf(server, tool string) func(done, total float64, text string) {
	p := &t.progress
	if p.tell == nil {
		return nil
	}
	return func(done, total float64, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over || time.Since(p.last) < progressEvery {
			return
		}
		p.last = time.Now()
		p.tell(0, 0, progressText(server, tool, done, total, text))
	}
}

// progressText puts a step of a call into words: calls of one run go on side by
// side, and the client has one number for all of them.
func progressText(server, tool string, done, total float64, message string) string {
	var b strings.Builder
	b.WriteString(text.Bound(server, 60) + "/" + text.Bound(tool, 60) + ":")
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	switch {
	case total > 0:
		b.WriteString(" " + number(done) + " of " + number(total))
	case message == "":
		b.WriteString(" " + number(done))
	}
	if message != "" {
		b.WriteString(" " + text.Bound(strings.Join(strings.Fields(message), " "), 200))
	}
	return b.String()
}

// follow returns where to write what a run prints: to out, which may be nil, and
// with lines also to the client that follows the run's progress.
func (t *talk) follow(out io.Writer, lines bool) io.Writer {
	if !lines || t.progress.tell == nil {
		return out
	}
	return output.Follow(out, t.progress.say)
}
