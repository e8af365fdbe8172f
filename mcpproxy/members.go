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
// would throw it away. What the values are is not looked at: Claude's file has
// megabytes that are none of ours.
func members(data []byte) (all []member, err error) {
	s := scan{text: data}
	ok := s.object(func(name []byte) (ok bool) {
		var m member
		if err = json.Unmarshal(name, &m.name); err != nil {
			return false
		}
		m.value, ok = s.part(anyDepth)
		all = append(all, m)
		return ok
	})
	if !ok && err == nil {
		err = errors.New("is not a JSON object")
	}
	return all, err
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
