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
	to := map[string]any{
		`"type"`: &f.Type, `"id"`: &f.ID, `"method"`: &f.Method, `"params"`: &f.Params, `"exitCode"`: &f.ExitCode,
		`"result"`: &f.Result, `"error"`: &f.Error, `"limit"`: &f.Limit, `"cause"`: &f.Cause, `"names"`: &f.Names,
		`"kept"`: &f.Kept, `"frames"`: &f.Frames,
	}
	var err error
	members := 0
	for name, value := range s.Members {
		if members++; members > maxMembers {
			err = fmt.Errorf("it has more than %d members", maxMembers)
		} else {
			err = setMember(to[string(name)], name, value, maxScalar)
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

// setMember reads a member of an object into what there is for it, if anything: a part of the
// text as it is, without a copy, or the value of one that has at most so many bytes. The name
// includes the quotes.
func setMember(to any, name []byte, value json.RawMessage, most int) error {
	switch to := to.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*to = value
		return nil
	}
	if len(value) > most {
		return fmt.Errorf("%s has %d bytes, the most is %d", name, len(value), most)
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

// sendStart begins the run. Its frame is one write, since frames must not mix.
func (r *exchange) sendStart() error {
	defer r.beginWriting()()
	body, err := json.Marshal(struct {
		Type  string `json:"type"`
		Begun bool   `json:"begun,omitempty"` // a begun frame is wanted
		Start
	}{"start", r.start.Begun != nil, r.start})
	if err != nil {
		return fmt.Errorf("encoding a start frame: %w", err)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	_, err = r.conn.Write(append(frame, body...))
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
