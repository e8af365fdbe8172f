package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
)

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in the order of the text: the
// order decides which of two clashing aliases gets the number, and a Go map
// would throw it away. The text is known to be JSON (toJSON), so it is only cut
// up, not checked again: Claude's file has megabytes that are none of ours.
func members(data []byte) (all []member, err error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return nil, errors.New("is not a JSON object")
	}
	for at := 1; ; {
		at = skipBlank(data, at, ",")
		if at == len(data) || data[at] == '}' {
			return all, nil
		}
		end := valueEnd(data, at)
		var m member
		if err := json.Unmarshal(data[at:end], &m.name); err != nil {
			return nil, err
		}
		at = skipBlank(data, end, ":")
		end = valueEnd(data, at)
		m.value = data[at:end:end]
		all = append(all, m)
		at = end
	}
}

func skipBlank(data []byte, at int, also string) int {
	for at < len(data) && (data[at] <= ' ' || data[at] == also[0]) {
		at++
	}
	return at
}

// valueEnd finds the end of the value that begins at a place.
func valueEnd(data []byte, at int) int {
	for depth := 0; at < len(data); at++ {
		switch c := data[at]; c {
		case '"':
			for at++; at < len(data) && data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				return min(at+1, len(data))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return at + 1 + min(depth, 0) // a number may stand before it
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
		}
	}
	return len(data)
}

// items returns those of a JSON list.
func items(data []byte) (list []json.RawMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return nil, errors.New("is not a list")
	}
	return list, json.Unmarshal(data, &list)
}

func find(all []member, name string) (json.RawMessage, bool) {
	for _, m := range all {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }
