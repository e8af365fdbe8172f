package consent

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Taint remember what was read from servers that the policy calls private: for a
// connection, since the model behind it carries data from run to run. A nil *Taint knows
// nothing of it, so it always gives a reason to ask.
type Taint struct {
	mu    sync.Mutex
	reads []string
	more  int
}

// maxReads bounds what is remembered by name. A reason names the first of them, and has
// room for what else it says: tools of servers may have long names.
const (
	maxReads      = 20
	maxNamedReads = 5
	maxNamedRead  = 48 // characters
)

// Add notes reads, such as "bank.list_accounts".
func (m *Taint) Add(reads ...string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, read := range reads {
		switch {
		case slices.Contains(m.reads, read):
		case len(m.reads) < maxReads:
			m.reads = append(m.reads, read)
		default:
			m.more++
		}
	}
}

// Reads returns what was read.
func (m *Taint) Reads() []string {
	if m == nil {
		return []string{"unknown servers"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reads)
}

// Reason says why something is asked that may let data out: "" if nothing was read.
func (m *Taint) Reason() string {
	if m == nil {
		return "private data may have been read before"
	}
	reads := m.Reads()
	if len(reads) == 0 {
		return ""
	}
	var named []string
	for _, read := range reads[:min(len(reads), maxNamedReads)] {
		named = append(named, clip(read, maxNamedRead))
	}
	list := strings.Join(named, ", ")
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(reads) - len(named) + m.more; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return "private data was read before, from " + list
}
