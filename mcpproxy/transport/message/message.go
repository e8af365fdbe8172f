// Package message handles JSON-RPC messages between the connection and the session of the
// SDK: results of calls, which are kept as the server wrote them while the SDK gets a
// placeholder, and requests and notifications of the server, which are handled at once or
// dropped.
package message

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	// MaxSize bounds one message of a server. The SDK's own stdio transport
	// stops at 16 MiB, which a tool that returns a file or a table can exceed. Code
	// cannot get more than this of a result (bridge's frames).
	MaxSize = 48 << 20

	maxError  = 1 << 20   // bytes of an error
	maxParams = 256 << 10 // of a request or notification
	maxOwn    = 1 << 20   // of a result for the SDK, which decodes it

	// MethodDiscover begins the handshake of 2026.
	MethodDiscover = "server/discover"
	// MethodInitialize begins the older handshake.
	MethodInitialize = "initialize"

	methodListen = "subscriptions/listen"
	// LegacyProtocol is the last version whose handshake does not begin so.
	LegacyProtocol = "2025-11-25"
)

// ErrNoDiscover ends a handshake whose server leaves server/discover unanswered.
var ErrNoDiscover = errors.New("did not answer server/discover")

// Batch splits an array of messages, which older protocol versions allow.
func Batch(ctx context.Context, line []byte) []json.RawMessage {
	line = wire.TrimMark(bytes.TrimSpace(line))
	if all, ok := wire.Batch(ctx, line); ok {
		return all
	}
	return []json.RawMessage{line}
}

// An UnreadableError is the error of an invalid answer of a server. The request may have
// taken effect.
type UnreadableError struct{ err error }

func (e *UnreadableError) Error() string {
	return "the server's answer cannot be read: " + e.err.Error()
}
func (e *UnreadableError) Unwrap() error { return e.err }

// Unreadable returns an UnreadableError.
func Unreadable(format string, args ...any) error {
	return &UnreadableError{fmt.Errorf(format, args...)}
}

func unreadable(why error) error {
	if known, ok := errors.AsType[*UnreadableError](why); ok {
		return known
	}
	return &UnreadableError{why}
}

// IsLost reports whether err means that the connection broke, in contrast to
// an answer that is an error.
func IsLost(err error) bool {
	for _, broken := range []error{mcp.ErrConnectionClosed, io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var long *TooLongError
	return errors.As(err, &long)
}

// A StrayError is an answer that names no request of ours.
type StrayError struct {
	ID  string // as far as there is one
	Err error  // what the answer says, if it is an error, else what is wrong with it
}

func (e *StrayError) Error() string { return e.Err.Error() }
func (e *StrayError) Unwrap() error { return e.Err }

// An UnknownIDError is an answer to a request that we did not send. A stream with answers to
// several requests skips it.
type UnknownIDError struct{ StrayError }

// failedAnswer returns an answer for the SDK in place of one that cannot be used. c may be
// nil.
func failedAnswer(c *Call, id jsonrpc.ID, why error) *jsonrpc.Response {
	if said, ok := errors.AsType[*jsonrpc.Error](why); ok {
		return &jsonrpc.Response{ID: id, Error: said}
	}
	if c != nil {
		c.Fail(why)
	}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why.Error()}}
}

// Decode decodes one message of a server and returns it if the session should
// see it. Notifications end here, and so do elicitations during a call. c is the call over
// whose stream the message came, or nil. The error is a *wire.Unreadable if raw is not JSON,
// a *StrayError for an answer without an ID of ours, a *UnreadableError for an invalid
// answer with one, or that of ctx.
func (n *Notifications) Decode(ctx context.Context, raw []byte, c *Call) (jsonrpc.Message, error) {
	m, err := wire.Read(ctx, raw)
	if err != nil {
		return nil, err
	}
	if m.Method == nil {
		return decodeAnswer(m)
	}
	if len(m.ID) > wire.MaxID || len(m.Method) > wire.MaxID {
		return nil, errNoMessage
	}
	method, ok := m.MethodName()
	if !ok || string(m.Version) != version {
		return nil, errNoMessage
	}
	if len(m.Params) > maxParams {
		m.Params = nil // which is an error of the request, if it needs any
	}
	if !wire.IsID(m.ID) {
		return n.notification(method, m.Params), nil
	}
	if !n.requests.Allow() {
		return nil, nil
	}
	req := &jsonrpc.Request{ID: n.questions.ids.Open(m.ID, nil), Method: method, Params: m.Params}
	if method == methodElicit && m.Params != nil && n.questions.take(req.ID, req.Params, c) {
		return nil, nil
	}
	return req, nil
}

const version = `"2.0"`

var errNoMessage = errors.New("this is no message of MCP")

// notification handles a notification, and returns it if the SDK should see it too.
func (n *Notifications) notification(method string, params json.RawMessage) jsonrpc.Message {
	switch {
	case method == methodCancelled:
		id, ok := n.questions.ids.Named(wire.Member(params, "requestId"))
		if !ok {
			return nil
		}
		n.questions.cancel(id)
		params = wire.Replace(params, fmt.Append(nil, id.Raw()), "requestId")
		return &jsonrpc.Request{Method: method, Params: params}
	case strings.HasPrefix(method, "notifications/subscriptions/"): // for the SDK
		return &jsonrpc.Request{Method: method, Params: params}
	case method == "notifications/tools/list_changed":
		n.Changed()
	case method == "notifications/progress":
		n.receiveProgress(params)
	case method == methodCompleted:
		n.questions.complete(params)
	}
	return nil
}

// Encode encodes a message for the server. Answers get the IDs that its requests had.
func (n *Notifications) Encode(msg jsonrpc.Message) ([]byte, error) {
	if answer, ok := msg.(*jsonrpc.Response); ok {
		if id, ok := n.questions.ids.Close(answer.ID); ok {
			return wire.Encode(answer, id)
		}
	}
	return jsonrpc.EncodeMessage(msg)
}

// Restore puts the server's ID into an answer that the SDK wrote.
func (n *Notifications) Restore(answer []byte, id json.RawMessage) []byte {
	if ours, ok := wire.OurID(id); ok {
		if written, ok := n.questions.ids.Close(ours); ok {
			return wire.Replace(answer, written, "id")
		}
	}
	return answer
}

// unknownID returns the error of an answer whose ID no request has.
func unknownID(id json.RawMessage) error {
	if id == nil {
		return unreadable(errors.New("it has no id"))
	}
	return unreadable(fmt.Errorf("it has the id %s, and no request does", text.Printable(string(id), 100)))
}

// decodeAnswer reads an answer, however odd: its request must not wait for ever.
func decodeAnswer(m wire.Message) (jsonrpc.Message, error) {
	failed := len(m.Error) > 0 && string(m.Error) != "null"
	id, ok := wire.OurID(m.ID)
	if len(m.ID) > wire.MaxID {
		m.ID = m.ID[:wire.MaxID] // for the error
	}
	if len(m.Error) > maxError {
		m.Error = fmt.Appendf(nil, `"an error of %d bytes; the most is %d"`, len(m.Error), maxError)
	}
	empty := m.Result == nil && !failed
	switch {
	case empty && !ok, (empty || !ok) && string(m.Version) != version:
		return nil, errNoMessage
	case empty: // JSON.stringify leaves out a result that is undefined
		return nil, unreadable(errors.New("it has neither a result nor an error"))
	case !ok && failed:
		return nil, &StrayError{string(m.ID), wire.ErrorOf(m.Error)}
	case !ok && m.ID != nil && m.ID[0] == '"': // not what became of an ID of ours, which are numbers
		return nil, &UnknownIDError{StrayError{string(m.ID), unknownID(m.ID)}}
	case !ok:
		return nil, &StrayError{string(m.ID), unknownID(m.ID)}
	case string(m.Version) != version:
		return nil, unreadable(errors.New(`it has no "jsonrpc": "2.0"`))
	case failed:
		return &jsonrpc.Response{ID: id, Error: wire.ErrorOf(m.Error)}, nil
	case wire.IsEmptyList(m.Result):
		m.Result = json.RawMessage("{}")
	}
	return &jsonrpc.Response{ID: id, Result: m.Result}, nil
}
