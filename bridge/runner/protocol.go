package runner

// The protocol between the host and the runner, over a stream socket that is the
// runner's descriptor 3:
//
//	host                                          runner (in the sandbox)
//	  │ ◀──────────────────── ready{python} ──────── │  interpreter is up
//	  │ ── start{code, servers, saved, …} ─────────▶ │
//	  │ ◀──────────── call{id, method, params} ───── │  any number, in parallel
//	  │ ── reply{id, result | error} ──────────────▶ │
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
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
)

// maxFrame bounds a frame from the sandbox, in bytes: arguments of a tool of
// 16 MiB of text fit several times over, also when JSON escapes them.
const maxFrame = 64 << 20

// A message is a frame to the runner. Which fields count depends on Type.
type message struct {
	Type string `json:"type"`

	// start
	Code    string   `json:"code,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Servers []Server `json:"servers,omitempty"`
	Saved   []string `json:"saved,omitempty"`
	Session string   `json:"session,omitempty"` // the runner stays for more runs

	// reply
	ID     int64           `json:"id,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *CallError      `json:"error,omitempty"`
}

// A frame is one from the sandbox. It has no lists: an element of a list takes
// more memory than its text, and so a frame would take many times its size.
type frame struct {
	Type string `json:"type"`

	// call
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	// done
	ExitCode int             `json:"exitCode"` // also of end
	Result   json.RawMessage `json:"result"`   // a string
	Error    json.RawMessage `json:"error"`    // a string
	Limit    string          `json:"limit"`    // that the code hit
	Kept     bool            `json:"kept"`     // the session continues

	// where
	Frames json.RawMessage `json:"frames"`
}

// A Server describes an upstream server to the runner.
type Server struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"` // its name as a Python identifier
	Description string `json:"description,omitempty"`
	Granted     bool   `json:"granted"` // the run may call it
}

// A CallError is the error of a call as the code gets it: an MCPError, or the
// built-in exception that Kind names.
type CallError struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"` // TypeError or ValueError
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
}

// Error returns the message.
func (e *CallError) Error() string { return e.Message }

// asCallError returns the form in which an error goes to the runner.
func asCallError(err error) *CallError {
	var e *CallError
	if errors.As(err, &e) {
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

// readFrame reads the n bytes of a frame.
func readFrame(r io.Reader, n int) (*frame, error) {
	// The buffer grows with the bytes received, not with the announced length.
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if len(body) < n {
		return nil, io.ErrUnexpectedEOF
	}
	var f frame
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return &f, nil
}

// writeFrame sends m in one write, so that the frames of parallel calls do not mix
// if the caller holds a lock.
func writeFrame(w io.Writer, m *message) error {
	if m.Type == "reply" && len(m.Result) >= bulkFrom && m.Error == nil {
		return writeBulk(w, m)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a %s frame: %w", m.Type, err)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// bulkFrom is the size in bytes from which a result is not encoded again, which
// would check and copy it: it has been checked when it was made.
const bulkFrom = 32 << 10

// writeBulk is writeFrame for a reply with a large result.
func writeBulk(w io.Writer, m *message) error {
	head := fmt.Appendf(make([]byte, 4), `{"type":"reply","id":%d,"result":`, m.ID)
	frame := net.Buffers{head, m.Result, []byte("}")}
	size := len(head) - 4 + len(m.Result) + 1
	if size > math.MaxUint32 {
		return errors.New("encoding a reply frame: it is too large")
	}
	binary.BigEndian.PutUint32(head, uint32(size))
	_, err := frame.WriteTo(w)
	return err
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
