package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// An Argument is one that was given by name.
type Argument struct {
	Name  string
	Value json.RawMessage
}

// ParseArguments splits a JSON object into its members, in their order; of two
// of one name the last counts. raw is known to be valid JSON, as every
// json.RawMessage that was decoded is: arguments may have many megabytes, so
// they are not read more often than need be.
func ParseArguments(raw json.RawMessage) ([]Argument, error) {
	rest := bytes.TrimSpace(raw)
	if len(rest) == 0 || isNull(rest) {
		return nil, nil
	}
	if rest[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	var all []Argument
	at := map[string]int{}
	for rest = space(rest[1:]); len(rest) > 0 && rest[0] == '"'; rest = space(rest) {
		end := valueEnd(rest, 0)
		var a Argument
		if err := json.Unmarshal(rest[:end], &a.Name); err != nil {
			return nil, err
		}
		rest = space(rest[end:])
		if len(rest) == 0 || rest[0] != ':' {
			return nil, errBroken
		}
		rest = space(rest[1:])
		end = valueEnd(rest, 0)
		a.Value = json.RawMessage(bytes.TrimSpace(rest[:end]))
		if i, ok := at[a.Name]; ok {
			all[i] = a
		} else if len(all) == maxArguments {
			return nil, fmt.Errorf("there are more than %d arguments", maxArguments)
		} else {
			at[a.Name] = len(all)
			all = append(all, a)
		}
		if rest = space(rest[end:]); len(rest) > 0 && rest[0] == ',' {
			rest = rest[1:]
		}
	}
	if string(rest) != "}" {
		return nil, errBroken
	}
	return all, nil
}

// ParseList splits a JSON array into its items, as ParseArguments does an
// object.
func ParseList(raw json.RawMessage) ([]json.RawMessage, error) {
	rest := bytes.TrimSpace(raw)
	if len(rest) == 0 || isNull(rest) {
		return nil, nil
	}
	if rest[0] != '[' {
		return nil, errors.New("the positional arguments are not a JSON array")
	}
	var all []json.RawMessage
	for rest = space(rest[1:]); len(rest) > 0 && rest[0] != ']'; rest = space(rest) {
		end := valueEnd(rest, 0)
		item := bytes.TrimSpace(rest[:end])
		switch {
		case len(item) == 0:
			return nil, errBroken
		case len(all) == maxArguments:
			return nil, fmt.Errorf("there are more than %d arguments", maxArguments)
		}
		all = append(all, json.RawMessage(item))
		if rest = space(rest[end:]); len(rest) > 0 && rest[0] == ',' {
			rest = rest[1:]
		}
	}
	if string(rest) != "]" {
		return nil, errBroken
	}
	return all, nil
}

var errBroken = errors.New("the arguments are not JSON")

func space(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }
