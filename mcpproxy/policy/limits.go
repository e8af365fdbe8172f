package policy

import (
	"fmt"
	"slices"
	"time"
)

// A limitKey is what calls are counted by: each server that a section is
// about, and each tool, has a count of its own.
type limitKey struct {
	section, server, tool string
	perMinute             bool
}

// A limit is one that applies to a call.
type limit struct {
	limitKey
	most int
}

func (l limit) rule() string {
	if l.perMinute {
		return fmt.Sprintf("callsPerMinute = %d", l.most)
	}
	return fmt.Sprintf("callsPerRun = %d", l.most)
}

func (l limit) what() string {
	if l.tool == "" {
		return fmt.Sprintf("server %q", l.server)
	}
	return fmt.Sprintf("%q of server %q", l.tool, l.server)
}

// A limitFinder keeps the first limit of each kind.
type limitFinder struct {
	found          []limit
	perRun, minute bool
}

func (f *limitFinder) add(l limits, k limitKey) {
	if l.PerRun > 0 && !f.perRun {
		f.perRun = true
		f.found = append(f.found, limit{k, int(l.PerRun)})
	}
	if l.PerMinute > 0 && !f.minute {
		f.minute, k.perMinute = true, true
		f.found = append(f.found, limit{k, int(l.PerMinute)})
	}
}

// minute gives the calls of the last minute. p.mu is held.
func (p *Policy) minute(k limitKey) *window {
	w := p.minutes[k]
	if w == nil {
		w = &window{}
		p.minutes[k] = w
	}
	return w
}

// A window has the times of the calls within the last minute, oldest first.
type window struct{ calls []time.Time }

// wait says how long it takes until there is room for one more call, 0 if there is.
func (w *window) wait(now time.Time, most int) time.Duration {
	old := 0
	for old < len(w.calls) && now.Sub(w.calls[old]) >= time.Minute {
		old++
	}
	w.calls = w.calls[old:]
	if len(w.calls) < most {
		return 0
	}
	return time.Minute - now.Sub(w.calls[len(w.calls)-most])
}

func (w *window) add(now time.Time) { w.calls = append(w.calls, now) }

// remove takes back a call of a time.
func (w *window) remove(at time.Time) {
	if i := slices.Index(w.calls, at); i >= 0 {
		w.calls = slices.Delete(w.calls, i, i+1)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
