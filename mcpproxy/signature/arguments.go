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
	ok := s.Object(func(quoted []byte) bool {
		var a Argument
		if err = json.Unmarshal(quoted, &a.Name); err != nil {
			return false
		}
		value, ok := s.Value(rawjson.MaxDepth)
		a.Value = value
		switch {
		case seen[a.Name]:
			err = fmt.Errorf("the argument %q is there twice", text.Bound(a.Name, 80))
		case len(all) == maxArguments:
			err = errTooManyArguments
		}
		seen[a.Name] = true
		all = append(all, a)
		return ok && err == nil
	})
	return whole(all, ok && s.Offset == len(raw), err)
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
	ok := s.List(func() bool {
		if len(all) == maxArguments {
			err = errTooManyArguments
			return false
		}
		item, ok := s.Value(rawjson.MaxDepth)
		all = append(all, item)
		return ok
	})
	return whole(all, ok && s.Offset == len(raw), err)
}

// whole gives what was read, if that was all of it.
func whole[T any](all []T, ok bool, err error) ([]T, error) {
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errBroken
	}
	return all, nil
}

var (
	errBroken           = errors.New("the arguments are not JSON")
	errTooManyArguments = fmt.Errorf("there are more than %d arguments", maxArguments)
)
