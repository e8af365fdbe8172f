package consent

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Marks remember what was read from servers that the policy calls private: for a
// connection, since the model behind it carries data from run to run. A nil *Marks
// remembers nothing.
type Marks struct {
	mu    sync.Mutex
	reads []string
	more  int
}

// maxReads bounds what is remembered by name.
const maxReads = 20

// Add notes reads, such as "bank.list_accounts".
func (m *Marks) Add(reads ...string) {
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
func (m *Marks) Reads() []string {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reads)
}

// Reason says why something is asked that may let data out: "" if nothing was read.
func (m *Marks) Reason() string {
	reads := m.Reads()
	if len(reads) == 0 {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := strings.Join(reads, ", ")
	if m.more > 0 {
		list += fmt.Sprintf(" and %d more", m.more)
	}
	return "private data was read before, from " + list
}
