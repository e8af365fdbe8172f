package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxMessage bounds one message of a server. The SDK's own stdio transport
	// stops at 16 MiB, which a tool that returns a file or a table can exceed.
	maxMessage = 128 << 20

	// methodDiscover begins the handshake of 2026.
	methodDiscover = "server/discover"
	// legacyProtocol is the last version whose handshake does not begin so.
	legacyProtocol = "2025-11-25"
)

// errNoDiscover ends a handshake whose server leaves server/discover unanswered.
var errNoDiscover = errors.New("did not answer server/discover")

// MessageTooLongError says that a server sent a message of more than limit bytes.
type MessageTooLongError struct{ limit int }

func (e *MessageTooLongError) Error() string {
	return fmt.Sprintf("sent a message longer than %d MiB", e.limit>>20)
}

// batch splits an array of messages, which older protocol versions allow.
func batch(line []byte) []json.RawMessage {
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

// decode decodes one message of a server and returns it if the session should
// see it. Notifications stop here.
func (n *notifications) decode(raw []byte) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		if msg = salvage(raw, err); msg == nil {
			return nil, err
		}
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok || req.IsCall() && n.admit():
		return msg, nil
	case req.IsCall():
		return nil, nil
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
