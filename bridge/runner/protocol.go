package runner

// The protocol between the host and the runner, over a stream socket that is the
// runner's descriptor 3:
//
//	host                                          runner (in the sandbox)
//	  │ ◀──────────────────── ready{python} ──────── │  interpreter is up
//	  │ ── start{code, servers, saved, …} ─────────▶ │
//	  │ ◀──────────────────── begun ──────────────── │  the code begins, if start asks for it
//	  │ ◀──────────── call{id, method, params} ───── │  any number, in parallel
//	  │ ── reply{id, result | error} ──────────────▶ │
//	  │ ◀────────────────── cancel{id} ───────────── │  the code has given a call up
//	  │ ◀──── done{exitCode, result?, error?, …} ─── │  the code has ended
//	  │ ◀───────────────── end{exitCode} ─────────── │  so have atexit and threads
//
// The end frame comes only from a sandbox that was started ahead of the run, and
// only if no other process is left in it: the host need not wait until the kernel
// has taken the sandbox apart.
//
// In a session, done{kept} means that the runner waits. Another start frame, at
// any later time, begins the next run.
//
// When the time of a run is up, a signal asks the runner where the code is. A
// text of faulthandler's comes, outside of any frame, and where{frames}
// (stackdump.go).
//
// A message is a frame: its length as four bytes, big-endian, and that many bytes
// of JSON. Everything that comes from the sandbox is hostile, since whatever runs
// there can write to the socket.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// maxFrame bounds a frame from the sandbox, in bytes: arguments of a tool of
// 16 MiB of text fit three times over, and a picture of 32 MiB in base64.
const maxFrame = maxRunHeld

// A message is a frame to the runner. Which fields count depends on Type.
type message struct {
	Type string `json:"type"`

	// start
	Code    string   `json:"code,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	File    string   `json:"file,omitempty"` // the name of the code
	Servers []Server `json:"servers,omitempty"`
	Saved   []string `json:"saved,omitempty"`
	Session string   `json:"session,omitempty"` // the runner stays for more runs
	Printed []string `json:"printed,omitempty"` // files that it asks for before the code runs
	Network *Network `json:"network,omitempty"`
	Input   bool     `json:"input,omitempty"` // sys.stdin asks for lines
	Begun   bool     `json:"begun,omitempty"` // a begun frame is wanted
	// Instead of running code, name what may continue this.
	Complete string `json:"complete,omitempty"`

	// reply
	ID     int64           `json:"id,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *CallError      `json:"error,omitempty"`
}

// A frame is one from the sandbox. It has no lists: an element of a list takes
// more memory than its text, and so a frame would take many times its size. Raw
// members are parts of its bytes, not copies.
type frame struct {
	Type string `json:"type"`

	// call
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	ctx    context.Context // that it is carried out with
	cancel context.CancelFunc

	// done
	ExitCode int             `json:"exitCode"` // also of end
	Result   json.RawMessage `json:"result"`   // a string
	Error    json.RawMessage `json:"error"`    // a string
	Limit    string          `json:"limit"`    // that the code hit
	Cause    string          `json:"cause"`    // of the error
	Names    json.RawMessage `json:"names"`    // a string
	Kept     bool            `json:"kept"`     // the session continues

	// where
	Frames json.RawMessage `json:"frames"`
}

// maxScalar bounds the text of a member of a frame that is decoded, in bytes.
const maxScalar = 1 << 10

// maxMembers bounds the members of a frame; the runner sends some ten.
const maxMembers = 100

// parseFrame finds the members of a frame. If one comes twice, the last counts.
func parseFrame(ctx context.Context, body []byte) (*frame, error) {
	f, s := &frame{}, rawjson.Scanner{Text: body, Context: ctx}
	var err error
	members := 0
	for name, value := range s.Members {
		if members++; members > maxMembers {
			err = fmt.Errorf("it has more than %d members", maxMembers)
		} else {
			err = f.set(string(name), value)
		}
		if err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil && !s.AtEnd() {
		err = errors.New("it is not a JSON object")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return f, nil
}

// set sets a member; its name includes the quotes.
func (f *frame) set(name string, value json.RawMessage) error {
	var to any
	switch name {
	case `"params"`:
		f.Params = value
	case `"result"`:
		f.Result = value
	case `"error"`:
		f.Error = value
	case `"frames"`:
		f.Frames = value
	case `"type"`:
		to = &f.Type
	case `"id"`:
		to = &f.ID
	case `"method"`:
		to = &f.Method
	case `"exitCode"`:
		to = &f.ExitCode
	case `"names"`:
		f.Names = value
	case `"limit"`:
		to = &f.Limit
	case `"cause"`:
		to = &f.Cause
	case `"kept"`:
		to = &f.Kept
	}
	switch {
	case to == nil:
		return nil
	case len(value) > maxScalar:
		return fmt.Errorf("its member %s has %d bytes, the most is %d", name, len(value), maxScalar)
	}
	return json.Unmarshal(value, to)
}

// A Server describes an upstream server to the runner.
type Server struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"` // its name as a Python identifier
	Description string `json:"description,omitempty"`
	Granted     bool   `json:"granted"`         // the run may call it
	Place       int    `json:"place,omitempty"` // among the granted ones, in the order that the request named them
}

// A CallError is the error of a call as the code gets it: an MCPError, or the
// built-in exception that Kind names.
type CallError struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"` // TypeError or ValueError
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Stopped bool   `json:"stopped,omitempty"` // the user has stopped the run, which says so itself
	Cause   error  `json:"-"`                 // for the host
}

// Error returns the message.
func (e *CallError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Cause }

// asCallError returns the form in which an error goes to the runner.
func asCallError(err error) *CallError {
	if e, ok := errors.AsType[*CallError](err); ok {
		return e
	}
	return &CallError{Message: err.Error()}
}

// frameSize reads the length in front of a frame.
func frameSize(head [4]byte) (int, error) {
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return 0, fmt.Errorf("%w: %d bytes, the most is %d", ErrProtocol, n, maxFrame)
	}
	return int(n), nil
}

// readFrame reads the n bytes of a frame. The caller has acquired room for them.
func readFrame(ctx context.Context, r io.Reader, n int) (*frame, error) {
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return parseFrame(ctx, body)
}

// writeFrame sends m in one write, so that the frames of parallel calls do not mix
// if the caller holds a lock.
func writeFrame(w io.Writer, m *message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a %s frame: %w", m.Type, err)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// maxDoneText bounds the JSON of a text in a done frame: 64 KiB, every byte escaped.
const maxDoneText = 6*(64<<10) + 2

// ownText copies a text of a done frame, so that the frame itself can be freed. It
// returns nil if the text is longer than any that the runner sends.
func ownText(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxDoneText {
		return nil
	}
	return bytes.Clone(raw)
}

// jsonString reads a string out of a done frame's result or error. Anything but a
// string counts as none.
func jsonString(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
