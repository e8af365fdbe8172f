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
// would throw it away.
func members(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var all []member
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		m := member{name: name}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
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
