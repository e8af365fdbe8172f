package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// A Trace is what can be said of a message that cannot be read.
type Trace struct {
	ID      json.RawMessage // nil if it was not found
	Request bool            // it has a method
	Answer  bool            // it has a result or, beside a version, an error
	Version bool            // it says that it is JSON-RPC
	// Cut reports that it ends before its ID does, or before any. Begins are the digits of
	// the ID that are there.
	Cut    bool
	Begins string
}

// maxTraces bounds what is looked for.
const maxTraces = 100

// Traces looks for the members that say what an unreadable message is, or the messages
// of an unreadable array. It goes by quotes and brackets alone, and so finds IDs before
// and behind the damage. If ctx ends, there may be more.
func Traces(ctx context.Context, raw []byte) (found []Trace) {
	raw = bytes.TrimSpace(raw)
	level := 1
	if len(raw) > 0 && raw[0] == '[' {
		level = 2
	}
	var t Trace
	failed := false
	flush := func() {
		t.Answer = t.Answer || t.Version && failed
		if (t.ID != nil || t.Answer || t.Request || t.Cut) && len(found) < maxTraces {
			found = append(found, t)
		}
		t, failed = Trace{}, false
	}
	depth := 0
	for i, next := 0, 0; i < len(raw); {
		if i >= next {
			if next = i + betweenLooks; ctx.Err() != nil {
				return found
			}
		}
		switch raw[i] {
		case '"':
			end := stringEnd(raw, i)
			if depth == level {
				value := afterColon(raw[end:])
				switch name := string(raw[i:end]); {
				case value == nil:
				case name == `"id"`:
					t.ID = damagedID(value)
					t.Begins = string(bytes.TrimLeft(value[:min(len(value), maxDigits)], `"`))
				case name == `"method"`:
					t.Request = true
				case name == `"jsonrpc"`:
					t.Version = true
				case name == `"result"`:
					t.Answer = true
				case name == `"error"`:
					failed = true
				}
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == level {
				flush()
			}
			depth--
		}
		i++
	}
	t.Cut = depth >= level && t.ID == nil && !t.Request && (t.Version || beginsMessage(raw))
	flush()
	return found
}

// maxDigits bounds the digits of an ID of ours, with a quote before them.
const maxDigits = 20

// beginsMessage reports whether raw ends within what most messages begin with.
func beginsMessage(raw []byte) bool {
	const beginning = `{"jsonrpc":`
	return len(raw) > 2 && strings.HasPrefix(beginning, string(raw[:min(len(raw), len(beginning)+1)]))
}

// betweenLooks is how many bytes are read between two looks at a context.
const betweenLooks = 64 << 10

// nesting returns how many brackets are open at the end of raw.
func nesting(raw []byte) (depth int) {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return depth
}

// stringEnd returns where the string ends that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// afterColon returns what follows the colon behind a name, or nil if there is none.
func afterColon(raw []byte) []byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != ':' {
		return nil
	}
	return bytes.TrimLeft(raw[1:], " \t\r\n")
}

// damagedID returns the ID at the beginning of raw if it is whole.
func damagedID(raw []byte) json.RawMessage {
	raw = raw[:min(len(raw), MaxID)]
	s := rawjson.Scanner{Text: raw}
	id := s.Value()
	if !IsID(id) {
		return nil
	}
	if s.SkipSpace(); s.Offset == len(raw) || raw[s.Offset] != ',' && raw[s.Offset] != '}' {
		return nil // it may go on
	}
	return bytes.Clone(id)
}
