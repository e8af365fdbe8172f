package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// An Argument is one that was given by name.
type Argument struct {
	Name  string
	Value json.RawMessage
}

// ParseArguments splits a JSON object into its members, in their order. A name that is
// there twice is an error. The values may have many megabytes, so they are not read more
// often than need be.
func ParseArguments(raw json.RawMessage) (all []Argument, err error) {
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
		a := Argument{Value: value}
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

var (
	errBroken           = errors.New("the arguments are not JSON")
	errTooManyArguments = fmt.Errorf("there are more than %d arguments", maxArguments)
)
