package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// ParseArguments splits a JSON object into its members, in their order. A duplicate name is
// an error. The values may have many megabytes, so they are not read more
// often than need be.
func ParseArguments(raw json.RawMessage) (all []rawjson.Member, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || rawjson.IsNull(raw) {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	seen := map[string]bool{}
	s := rawjson.Scanner{Text: raw}
	for quoted, value := range s.Members {
		a := rawjson.Member{Value: value}
		if err := json.Unmarshal(quoted, &a.Name); err != nil {
			return nil, err
		}
		switch {
		case seen[a.Name]:
			return nil, fmt.Errorf("the argument %q is there twice", text.Bound(a.Name, 80))
		case len(all) == maxArguments:
			return nil, errTooManyArguments
		}
		seen[a.Name] = true
		all = append(all, a)
	}
	if !s.AtEnd() {
		return nil, errBroken
	}
	return all, nil
}

// ParseList splits a JSON array into its items, as ParseArguments does an
// object.
func ParseList(raw json.RawMessage) (all []json.RawMessage, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || rawjson.IsNull(raw) {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, errors.New("the positional arguments are not a JSON array")
	}
	s := rawjson.Scanner{Text: raw}
	for n, item := range s.Items {
		if n == maxArguments {
			return nil, errTooManyArguments
		}
		all = append(all, item)
	}
	if !s.AtEnd() {
		return nil, errBroken
	}
	return all, nil
}

// Read returns arguments that were typed at a terminal, each a text: a text that is JSON, and
// that its parameter takes, becomes that value. One that fits neither way does, too, so that
// what checks it says what is wrong with the value.
func (s *Signature) Read(typed []rawjson.Member) []rawjson.Member {
	v := valueChecker{old: s.old, left: maxCheckWork}
	for i, a := range typed {
		var word string
		if json.Unmarshal(a.Value, &word) != nil || !json.Valid([]byte(word)) {
			continue
		}
		value, schema, takesAll := json.RawMessage(strings.TrimSpace(word)), s.others, true
		if at := s.indexOf(a.Name); at >= 0 {
			schema, takesAll = s.Parameters[at].schema, s.Parameters[at].typ == typeAny
		}
		asText := v.mismatch(schema, a.Value, 0) == nil
		isText := asText && value[0] == '"' && !takesAll // with its quotes
		if !isText && (!asText || v.mismatch(schema, value, 0) == nil) {
			typed[i].Value = value
		}
	}
	return typed
}

var (
	errBroken           = errors.New("the arguments are not JSON")
	errTooManyArguments = fmt.Errorf("there are more than %d arguments", maxArguments)
)
