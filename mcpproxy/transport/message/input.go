package message

import (
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// InputRequired is a result that asks for input; the request is then sent again with it
// (2026-07-28, Multi Round-Trip Requests).
type InputRequired struct {
	Requests []InputRequest // in the order of the server; empty if it only wants more time
	State    string         // what it wants to get back, unread
}

// InputRequest is one input that the server asks for.
type InputRequest struct {
	Key, Method string
	Params      json.RawMessage
}

// Bounds of an input_required result.
const (
	maxInputRequests = 16
	maxInputMembers  = 100 // of it, and of one request
	maxInputKey      = 256
	maxRequestState  = 1 << 20
	maxInput         = 4 << 20 // of all of it
)

// NeedsInput reports whether the result is an InputRequired.
func (r Reply) NeedsInput() bool { return r.asks }

// InputRequired reads the result as one.
func (r Reply) InputRequired() (in InputRequired, err error) {
	if len(r.Result) > maxInput {
		return in, fmt.Errorf("it has %d bytes; the most is %d", len(r.Result), maxInput)
	}
	members, err := rawjson.MembersUpTo(maxInputMembers, r.Result)
	if err != nil {
		return in, err
	}
	if raw, given := rawjson.Find(members, "requestState"); given && !rawjson.IsNull(raw) {
		if len(raw) > maxRequestState {
			return in, fmt.Errorf("its requestState is longer than %d MiB", maxRequestState>>20)
		}
		if in.State, err = exactText(raw); err != nil {
			return in, fmt.Errorf("its requestState %w", err)
		}
	}
	raw, given := rawjson.Find(members, "inputRequests")
	if !given || rawjson.IsNull(raw) {
		return in, nil
	}
	requests, err := rawjson.MembersUpTo(maxInputRequests, raw)
	if err != nil {
		return in, fmt.Errorf("its inputRequests %w", err)
	}
	seen := map[string]bool{}
	for _, m := range requests {
		if seen[m.Name] || len(m.Name) > maxInputKey {
			return in, fmt.Errorf("a key of its inputRequests comes twice or is longer than %d bytes", maxInputKey)
		}
		seen[m.Name] = true
		one := InputRequest{Key: m.Name}
		parts, err := rawjson.MembersUpTo(maxInputMembers, m.Value)
		if err != nil {
			return in, fmt.Errorf("one of its inputRequests %w", err)
		}
		method, _ := rawjson.Find(parts, "method")
		if json.Unmarshal(method, &one.Method) != nil {
			return in, errors.New("one of its inputRequests has no method")
		}
		one.Params, _ = rawjson.Find(parts, "params")
		in.Requests = append(in.Requests, one)
	}
	return in, nil
}

// exactText decodes a JSON string that has to go back to the server unchanged. Half of a
// surrogate pair would become another character.
func exactText(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", errors.New("is not text")
	}
	exact, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", errors.New("has characters that cannot be returned unchanged")
	}
	return string(exact), nil
}
