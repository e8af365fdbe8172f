package rawjson

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
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
func MembersUpTo(limit int, data []byte) (all []Member, err error) {
	s := Scanner{Text: data, Depth: AnyDepth}
	for quoted, value := range s.Members {
		if len(all) == limit {
			return all, fmt.Errorf("has more than %d members", limit)
		}
		m := Member{Value: value}
		if err := json.Unmarshal(quoted, &m.Name); err != nil {
			return all, err
		}
		all = append(all, m)
	}
	if !s.AtEnd() {
		return all, errors.New("is not a JSON object")
	}
	return all, nil
}

// Items returns the items of a JSON list, which may nest as deep as they like.
func Items(data []byte) (list []json.RawMessage, err error) {
	s := Scanner{Text: data, Depth: AnyDepth}
	for n, item := range s.Items {
		if n == maxItems {
			return nil, fmt.Errorf("has more than %d items", maxItems)
		}
		list = append(list, item)
	}
	if !s.AtEnd() {
		return nil, errors.New("is not a list")
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

// Text decodes a string; ok is false for anything else.
func Text(raw []byte) (s string, ok bool) {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// Quote encodes a string with as few escapes as JSON allows; package json also escapes what
// HTML does not allow.
func Quote(s string) json.RawMessage {
	quoted, _ := jsontext.AppendQuote(nil, s) // it replaces what is not UTF-8
	return quoted
}
