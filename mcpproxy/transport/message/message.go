// Package message has what the transports know of JSON-RPC messages: calls, whose
// results are kept as the server wrote them while the SDK gets a stand-in, and what a
// server sends without being asked, which is handled at once or dropped. Both stand
// between the connection and the session of the SDK.
package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// MaxSize bounds one message of a server. The SDK's own stdio transport
	// stops at 16 MiB, which a tool that returns a file or a table can exceed.
	MaxSize = 128 << 20

	// MethodDiscover begins the handshake of 2026.
	MethodDiscover = "server/discover"
	// LegacyProtocol is the last version whose handshake does not begin so.
	LegacyProtocol = "2025-11-25"
)

// ErrNoDiscover ends a handshake whose server leaves server/discover unanswered.
var ErrNoDiscover = errors.New("did not answer server/discover")

// TooLongError says that a server sent a message of more than Limit bytes.
type TooLongError struct{ Limit int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("sent a message longer than %d MiB", e.Limit>>20)
}

// Batch splits an array of messages, which older protocol versions allow.
func Batch(line []byte) []json.RawMessage {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '[' {
		return []json.RawMessage{line}
	}
	var all []json.RawMessage
	if json.Unmarshal(line, &all) != nil {
		return []json.RawMessage{line}
	}
	return all
}

// Decode decodes one message of a server and returns it if the session should
// see it. Notifications stop here, and so does what the server asks in a call. c is
// the call over whose stream the message came, or nil.
func (n *Notifications) Decode(raw []byte, c *Call) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		if msg = salvage(raw, err); msg == nil {
			return nil, err
		}
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok:
		return msg, nil
	case req.IsCall():
		if !n.admit() || req.Method == methodElicit && n.questions.take(req, c) {
			return nil, nil
		}
		return msg, nil
	case req.Method == methodCancelled:
		n.questions.cancel(req.Params)
		return msg, nil
	case forSDK(req.Method):
		return msg, nil
	}
	n.receive(req.Method, req.Params)
	return nil, nil
}

// salvage makes an error response of an answer that cannot be decoded (nested
// too deeply, no version), so that the call it belongs to fails at once
// instead of waiting for ever.
func salvage(raw []byte, cause error) jsonrpc.Message {
	var head struct {
		ID     any
		Method *string
		Result json.RawMessage
		Error  json.RawMessage
	}
	if json.Unmarshal(raw, &head) != nil || head.Method != nil || head.Result == nil && head.Error == nil {
		return nil
	}
	id, err := jsonrpc.MakeID(head.ID)
	if err != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code: jsonrpc.CodeInternalError, Message: "the server's answer cannot be read: " + cause.Error(),
	}}
}
