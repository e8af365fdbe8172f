package hostapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxLeftOut = 3   // servers that are named
	maxReason  = 160 // bytes of the reason of each
)

// leftOut are the servers that the last search could not search: code that
// finds nothing should know that the search was incomplete.
type leftOut struct {
	mu      sync.Mutex
	reasons map[string]string // by server
}

// set replaces the result of an earlier search, since the last one may have
// covered servers that the earlier one missed.
func (l *leftOut) set(problems []config.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = map[string]string{}
	for _, p := range problems {
		l.reasons[p.Server] = p.Reason
	}
}

// note returns the note about them, if there are any.
func (l *leftOut) note() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reasons) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(l.reasons))
	var parts []string
	for _, name := range names[:min(len(names), maxLeftOut)] {
		parts = append(parts, fmt.Sprintf("%q (%s)", text.Bound(name, 80), text.Bound(l.reasons[name], maxReason)))
	}
	note := "the search of tools left out " + strings.Join(parts, ", ")
	if more := len(names) - maxLeftOut; more > 0 {
		note += fmt.Sprintf(" and %d more servers", more)
	}
	return []string{note}
}
