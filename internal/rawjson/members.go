package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What Members and Items return takes more memory than its text.
const (
	maxMembers = 200_000
	maxItems   = 1_000_000
)

// Member is one name and value of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of a JSON object in their order, which decides
// which of two clashing aliases gets a number; a Go map would lose it. It does not
// decode the values: Claude's file has megabytes that are not about servers. They may
// nest as deep as they like.
func Members(data []byte) ([]Member, error) { return MembersUpTo(maxMembers, data) }

// MembersUpTo is Members of an object that has no more than so many.
func MembersUpTo(most int, data []byte) (all []Member, err error) {
	s := Scanner{Text: data}
	ok := s.Object(func(name []byte) (ok bool) {
		if len(all) == most {
			err = fmt.Errorf("has more than %d members", most)
			return false
		}
		var m Member
		if err = json.Unmarshal(name, &m.Name); err != nil {
			return false
		}
		m.Value, ok = s.Any()
		all = append(all, m)
		return ok
	})
	if !ok && err == nil {
		err = errors.New("is not a JSON object")
	}
	return all, err
}

// Items returns the items of a JSON list, which may nest as deep as they like.
func Items(data []byte) (list []json.RawMessage, err error) {
	s := Scanner{Text: data}
	ok := s.List(func() bool {
		if len(list) == maxItems {
			err = fmt.Errorf("has more than %d items", maxItems)
			return false
		}
		item, ok := s.Any()
		list = append(list, item)
		return ok
	})
	if s.SkipSpace(); (!ok || s.Offset < len(data)) && err == nil {
		err = errors.New("is not a list")
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Find returns the value of the first member of that name.
func Find(all []Member, name string) (json.RawMessage, bool) {
	for _, m := range all {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// IsNull reports whether raw is null, apart from white space.
func IsNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }
