package gate

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/text"
)

// progressEvery is how often a run passes on the progress of its calls, after the first
// few reports: some servers report it thousands of times a second, and a short call only
// a few times.
const (
	progressEvery = 200 * time.Millisecond
	progressFirst = 10
)

// callProgress passes on the progress that servers report for one run's calls.
type callProgress struct {
	report func(text string) // may be nil

	mu     sync.Mutex
	passed int
	last   time.Time
}

// of returns the function that gets the progress of one call, nil if no one
// listens.
func (p *callProgress) of(server, tool string) func(done, total float64, text string) {
	if p.report == nil {
		return nil
	}
	return func(done, total float64, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.passed >= progressFirst && time.Since(p.last) < progressEvery {
			return
		}
		p.passed++
		p.last = time.Now()
		p.report(progressText(server, tool, done, total, text))
	}
}

// progressText describes a step of a call: calls of one run are concurrent, and
// the client has one number for all of them.
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
