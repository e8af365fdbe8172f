package hostapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

const (
	maxLeftOut = 3   // servers that are named
	maxReason  = 160 // bytes of the reason of each
)

// leftOut are the servers that the last search could not search: code that
// finds nothing should know that the search was incomplete.
type leftOut struct {
	first   func(note string) bool // reports whether a note was not given before
	mu      sync.Mutex
	reasons map[string]config.Problem // by server
}

// set replaces the result of an earlier search, since the last one may have
// covered servers that the earlier one missed.
func (l *leftOut) set(problems []config.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = map[string]config.Problem{}
	for _, p := range problems {
		l.reasons[p.Server] = p
	}
}

// note returns the note about them, if there are any. A server that does not start is
// reported once; that one is still starting is news each time.
func (l *leftOut) note() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(l.reasons)) {
		p := l.reasons[name]
		part := fmt.Sprintf("%q (%s)", text.Bound(name, 80), text.OneLine(p.Reason, maxReason))
		if p.Status == config.StatusStarting || l.first("left out: "+name+" "+withoutDigits(p.Reason)) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	note := "the search of tools left out " + strings.Join(parts[:min(len(parts), maxLeftOut)], ", ")
	if more := len(parts) - maxLeftOut; more > 0 {
		note += fmt.Sprintf(" and %d more servers", more)
	}
	return []string{note}
}

// withoutDigits makes reasons equal that differ in a process ID or a time.
func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
