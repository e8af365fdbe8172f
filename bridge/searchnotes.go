package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxUnsearched = 3   // servers that are named
	maxWhy        = 160 // characters of the reason of each
)

// noteUnsearched keeps which servers a search left out: code that finds nothing
// has to know that it has not looked everywhere.
func (t *talk) noteUnsearched(problems []config.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = map[string]string{} // of the last search: it may have found what an earlier one missed
	for _, p := range problems {
		t.left[p.Server] = p.Reason
	}
}

// unsearched is the note about them, or nothing.
func (t *talk) unsearched() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(t.left))
	var parts []string
	for _, name := range names[:min(len(names), maxUnsearched)] {
		parts = append(parts, fmt.Sprintf("%q (%s)", text.Bound(name, 80), text.Bound(t.left[name], maxWhy)))
	}
	note := "the search of tools left out " + strings.Join(parts, ", ")
	if more := len(names) - maxUnsearched; more > 0 {
		note += fmt.Sprintf(" and %d more servers", more)
	}
	return note
}
