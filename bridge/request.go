package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// A Request is one call of run_python.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called, "*" is all; and hosts, as https://HOST
	Timeout time.Duration // 0 is the default
	Session string        // session that keeps the sandbox for later runs; "" is none
	File    string        // that the code comes from: __file__, and its name in tracebacks
	Plan    bool          // a dry run: calls that may change something are listed in the result instead of being made
	Argv    []string      // sys.argv; a session keeps that of its first run. One empty name if nil

	// Progress receives the progress of preparations before the code runs and
	// then, with a total of 0, the progress of its calls. It may be nil.
	Progress func(done, total int64, text string)
	Lines    bool // Progress gets what the code prints, too
	// Stdout and Stderr receive the code's whole output as it is written, in
	// addition to the result. They may be nil.
	Stdout, Stderr io.Writer
	// Stdin is the code's standard input, which is empty if Stdin is nil. No more than a
	// pipe holds is read before the code asks for it. A session keeps the Stdin of its
	// first run.
	Stdin io.Reader
	// Input, if it is not nil, is used for sys.stdin instead. It is called when the
	// code reads a line, and returns the line with its line end, io.EOF, or
	// ErrInterrupted, which raises KeyboardInterrupt. The time that it takes does not
	// count as time of the run.
	Input func(ctx context.Context) (string, error)
	// Ask puts a question to the user and returns the answer. If it is nil, no user
	// can be asked. It is for callers of Run; clients are asked as they can be.
	Ask     func(ctx context.Context, q consent.Question) consent.Answer
	elicits mcpproxy.ElicitCapabilities // how what servers ask can be asked
	// Running, if it is not nil, is called when the code is about to run, with a
	// function that raises KeyboardInterrupt in it.
	Running func(interrupt func())
}

// ErrInterrupted is what Request.Input returns for Ctrl-C.
var ErrInterrupted = hostapi.ErrInterrupted

// parseArguments reads the arguments of the tool one by one, so that an error
// names the one that is wrong and what it should be.
func parseArguments(raw json.RawMessage) (Request, error) {
	var req Request
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
func digestOf(req Request) string {
	body, err := json.Marshal([]any{req.Code, req.Servers, req.Timeout, req.Session, req.Plan})
	if err != nil {
		panic(err) // texts, a number and a bool only
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
