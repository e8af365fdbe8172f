package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/text"
)

// parseArguments reads the arguments of the tool one by one, so that an error
// names the one that is wrong and what it should be.
func parseArguments(raw json.RawMessage) (run.Request, error) {
	var req run.Request
	var args map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return req, errors.New(`arguments must be an object, such as {"code": "print(1)"}`)
		}
	}
	for name, value := range args {
		var err error
		switch name {
		case "code":
			if json.Unmarshal(value, &req.Code) != nil || string(value) == "null" {
				err = errors.New("code must be a string of Python source")
			}
		case "servers":
			req.Servers, err = parseServers(value)
		case "timeout":
			req.Timeout, err = parseTimeout(value)
		case "session":
			if json.Unmarshal(value, &req.Session) != nil {
				err = errors.New(`session must be a name, such as "analysis"`)
			}
		case "plan":
			if json.Unmarshal(value, &req.Plan) != nil {
				err = errors.New("plan must be true or false")
			}
		default:
			err = fmt.Errorf("there is no argument %q; there are code, servers, timeout, session and plan", text.Bound(name, 40))
		}
		if err != nil {
			return req, err
		}
	}
	if _, ok := args["code"]; !ok {
		return req, errors.New("code is missing; give Python source")
	}
	return req, nil
}

// parseServers reads a list of names. Some models write the list as a text.
func parseServers(value json.RawMessage) (names []string, err error) {
	var text string
	if json.Unmarshal(value, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "[") {
		value = json.RawMessage(text)
	}
	if json.Unmarshal(value, &names) != nil {
		return nil, errors.New(`servers must be a list of server names, such as ["github"]`)
	}
	return names, nil
}

// parseTimeout reads whole seconds above zero; null is the default.
func parseTimeout(value json.RawMessage) (time.Duration, error) {
	if string(value) == "null" {
		return 0, nil
	}
	var n float64
	if json.Unmarshal(value, &n) != nil {
		return 0, errors.New("timeout must be a whole number of seconds")
	}
	switch {
	case n <= 0:
		return 0, errors.New("timeout must be more than 0 seconds")
	case n != math.Trunc(n):
		return 0, errors.New("timeout must be a whole number of seconds")
	case n > math.MaxInt32:
		n = math.MaxInt32 // the maximum lowers it anyway
	}
	return time.Duration(n) * time.Second, nil
}

// digestOf is the SHA-256 of what a request asks for.
func digestOf(req run.Request) string {
	body, err := json.Marshal([]any{req.Code, req.Servers, req.Timeout, req.Session, req.Plan})
	if err != nil {
		panic(err) // texts, a number and a bool only
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
