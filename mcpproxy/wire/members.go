package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// Member returns a value inside of objects, by the names that lead to it, or nil. Of two
// members of one name the last counts.
func Member(raw json.RawMessage, path ...string) json.RawMessage {
	from, to := span(raw, path)
	if to == 0 {
		return nil
	}
	return raw[from:to:to]
}

// Replace returns raw with another value at a place where there is one.
func Replace(raw json.RawMessage, value []byte, path ...string) json.RawMessage {
	from, to := span(raw, path)
	if to == 0 {
		return raw
	}
	return slices.Concat(raw[:from], value, raw[to:])
}

// span returns where a value is, or 0 as its end.
func span(raw json.RawMessage, path []string) (from, to int) {
	to = len(raw)
	for _, name := range path {
		s := rawjson.Scanner{Text: raw[from:to], Depth: rawjson.AnyDepth}
		begin, end := 0, 0
		for quoted, value := range s.Members {
			if IsName(quoted, name) {
				begin, end = s.Offset-len(value), s.Offset
			}
		}
		if end == 0 {
			return 0, 0
		}
		from, to = from+begin, from+end
	}
	return from, to
}

// IsName reports whether the name of a member, in its quotes, is this one.
func IsName(quoted []byte, name string) bool {
	if !bytes.ContainsRune(quoted, '\\') {
		return string(quoted[1:len(quoted)-1]) == name
	}
	if len(quoted) > 6*len(name)+2 { // an escape has six bytes
		return false
	}
	s, _ := rawjson.Text(quoted)
	return s == name
}
