package pins

import (
	"encoding/json"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// Hints are a server's claims about a tool (MCP specification, ToolAnnotations): "clients
// should never make tool use decisions based on ToolAnnotations received from untrusted
// servers". The zero value claims nothing.
type Hints struct {
	ReadOnly    bool `json:"readOnly,omitempty"`
	Destructive bool `json:"destructive,omitempty"` // says so itself; the protocol's default does not count
}

// ReadHints reads the annotations of a tool. Only hints that all readers understand alike
// count: with a duplicate name, in any case, or a value that is neither true nor false, the
// tool counts as one that writes.
func ReadHints(annotations json.RawMessage) Hints {
	all, err := rawjson.Members(annotations)
	if err != nil {
		return Hints{}
	}
	readOnly, plain := flag(all, "readOnlyHint")
	destructive, plainToo := flag(all, "destructiveHint")
	return Hints{ReadOnly: readOnly && plain && plainToo, Destructive: destructive || !plainToo}
}

// flag returns a member that is true or false, and whether it is unambiguous. It is false if
// there is none.
func flag(all []rawjson.Member, name string) (value, plain bool) {
	plain = true
	for i, m := range all {
		if !strings.EqualFold(m.Name, name) {
			continue
		}
		said := string(m.Value)
		if m.Name != name || said != "true" && said != "false" && said != "null" {
			plain = false
		}
		for _, other := range all[:i] {
			plain = plain && !strings.EqualFold(other.Name, name)
		}
		value = said == "true"
	}
	return value, plain
}

// believed reports whether a tool that now has these hints counts as one that only reads,
// if its pin had the hints before: the hint has to be in both, and the server must not
// say meanwhile that the tool destroys something.
func (h Hints) believed(before Hints) bool {
	return h.ReadOnly && before.ReadOnly && (!h.Destructive || before.Destructive)
}

// HintUnaccepted reports whether the server says that the tool only reads, which does not
// count since the pin does not say so.
func (t *Tool) HintUnaccepted() bool {
	if t.Seen == nil || t.ReadsOnly {
		return false
	}
	return t.Seen.Hints.ReadOnly && !t.Seen.Hints.believed(t.pinned().Hints)
}
