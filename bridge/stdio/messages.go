package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// lineEnds is the length kept at each end of a line that is too long.
const lineEnds = 1 << 10

// readLine reads one line. A line over the limit is reduced to its two ends.
func readLine(in *wire.Lines) (line []byte, tooLong bool, err error) {
	for {
		piece, ended, err := in.Piece()
		line = append(line, piece...)
		if len(line) > maxClientLine || tooLong && len(line) > 2*lineEnds {
			tooLong = true
			line = append(line[:lineEnds:lineEnds], line[len(line)-lineEnds:]...)
		}
		if ended || err != nil {
			return bytes.TrimSpace(wire.TrimMark(line)), tooLong, err
		}
	}
}

// messages passes the messages in a line on: one, or several in an array, as older
// versions of the protocol allow. Each goes on before the next is read, since of very many
// the last have room only once the first are answered. It returns false if hand does. An
// invalid line is answered here.
func (c *Conn) messages(line []byte, tooLong bool, hand func(jsonrpc.Message) bool) (open bool) {
	defer contain.Recover("reading a message of the client", func(err error) {
		open = true
		c.refuse(nil, jsonrpc.CodeInternalError, err)
	})
	pass := func(all []jsonrpc.Message) bool {
		return !slices.ContainsFunc(all, func(msg jsonrpc.Message) bool { return !hand(msg) })
	}
	if len(bytes.Trim(line, "\x00")) == 0 { // the rest of a line end of UTF-16, too
		return true
	}
	if tooLong {
		return pass(c.refuseLine(line, jsonrpc.CodeInvalidRequest, fmt.Errorf("the message is longer than %d MiB", maxClientLine>>20)))
	}
	raws, ok := wire.Batch(context.Background(), line)
	if !ok {
		return pass(c.refuseLine(line, jsonrpc.CodeParseError, fmt.Errorf("this is no array of messages: %w", wire.NotJSON(line))))
	}
	if len(raws) == 0 {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, errors.New("the array of messages is empty"))
	}
	for _, raw := range raws {
		if !pass(c.containedMessage(raw)) {
			return false
		}
	}
	return true
}

// containedMessage is message. If that panics, the request in it is refused, and the
// others of its line stay.
func (c *Conn) containedMessage(raw []byte) (msgs []jsonrpc.Message) {
	defer contain.Recover("reading a request of the client", func(err error) {
		msgs = c.refuseLine(raw, jsonrpc.CodeInternalError, err)
	})
	contain.Point("stdio: reading a message")
	return c.message(raw)
}

// message reads one message, and answers what is none.
func (c *Conn) message(raw []byte) []jsonrpc.Message {
	m, err := wire.Read(context.Background(), raw)
	if err != nil {
		code := int64(jsonrpc.CodeParseError)
		var bad *wire.Unreadable
		if errors.As(err, &bad) && bad.IsJSON {
			code = jsonrpc.CodeInvalidRequest
		}
		return c.refuseLine(raw, code, fmt.Errorf("this is no message: %w", err))
	}
	if id, ok := wire.OurID(m.ID); ok && m.Method == nil && c.isAnswer(id, m) {
		return []jsonrpc.Message{answerOf(id, m)}
	}
	var msg jsonrpc.Message
	switch method, ok := m.MethodName(); {
	case string(m.Version) != `"2.0"`:
		err = errors.New(`"jsonrpc" must be "2.0"`)
	case m.Method == nil && (m.Result != nil || m.Error != nil):
		c.log.Warn("the client answered what it was not asked", "id", string(m.ID[:min(len(m.ID), 100)]))
		return nil
	case m.Method == nil:
		err = errors.New("there is no method")
	case !ok:
		err = fmt.Errorf("the method must be text, not %s", wire.KindOf(m.Method))
	case m.ID == nil, string(m.ID) == "null" && strings.HasPrefix(method, "notifications/"):
		if n := c.notification(method, m.Params); n != nil {
			return []jsonrpc.Message{n}
		}
		return nil
	case !wire.IsID(m.ID):
		err = fmt.Errorf("the id must be text or a number, not %s", wire.KindOf(m.ID))
	default:
		msg = c.request(method, m)
	}
	if err != nil {
		c.refuse(m.ID, jsonrpc.CodeInvalidRequest, err)
	}
	if msg == nil {
		return nil
	}
	return []jsonrpc.Message{msg}
}

// isAnswer reports whether a message without a method answers a request of ours. It may
// have neither a result nor an error: JSON.stringify leaves out what is undefined.
func (c *Conn) isAnswer(id jsonrpc.ID, m wire.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := c.asked[id]
	delete(c.asked, id)
	return m.Result != nil || m.Error != nil || m.Params == nil && waits
}

// request takes in a request of the client, under an ID and with a progress token of our
// own. It returns nil if that was refused.
func (c *Conn) request(method string, m wire.Message) jsonrpc.Message {
	params, err := tidy(method, m.Params)
	if err != nil {
		c.refuse(m.ID, jsonrpc.CodeInvalidParams, fmt.Errorf("%s: %w", method, err))
		return nil
	}
	var token json.RawMessage
	if bytes.Contains(params, []byte(tokenKey)) {
		if token = wire.Member(params, "_meta", tokenKey); string(token) == "null" {
			token = nil
		}
	}
	id := c.ids.Open(m.ID, token)
	if token != nil {
		params = wire.Replace(params, fmt.Append(nil, id.Raw()), "_meta", tokenKey)
	}
	if !c.admit(id, request{method, len(params) + len(m.ID) + len(token)}) {
		return nil
	}
	return &jsonrpc.Request{ID: id, Method: method, Params: params}
}

// notification reads a notification. Nothing waits for an answer to it: what is wrong
// with it is logged. One that cancels a request names it by our ID, or is dropped if there
// is no such request: it may come later, and is another one.
func (c *Conn) notification(method string, params json.RawMessage) jsonrpc.Message {
	params, err := tidy(method, params)
	if err != nil {
		c.log.Warn("the client sent a notification that cannot be read", "method", method[:min(len(method), 100)], "err", err)
		return nil
	}
	if method == methodCancelled {
		id, ok := c.ids.Named(wire.Member(params, "requestId"))
		if !ok {
			return nil
		}
		params = wire.Replace(params, fmt.Append(nil, id.Raw()), "requestId")
	}
	return &jsonrpc.Request{Method: method, Params: params}
}

// answerOf reads the client's answer to a request of ours.
func answerOf(id jsonrpc.ID, m wire.Message) jsonrpc.Message {
	switch {
	case len(m.Error) > 0 && string(m.Error) != "null":
		return &jsonrpc.Response{ID: id, Error: wire.ErrorOf(m.Error)}
	case wire.IsEmptyList(m.Result):
		m.Result = json.RawMessage("{}")
	case len(m.Result) == 0 || m.Result[0] != '{':
		return unreadableAnswer(id, fmt.Errorf("its result must be an object, not %s", wire.KindOf(m.Result)))
	}
	return &jsonrpc.Response{ID: id, Result: m.Result}
}

func unreadableAnswer(id jsonrpc.ID, why error) jsonrpc.Message {
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client's answer cannot be read: " + why.Error()}}
}

// refuseLine answers what cannot be read, so that a client waiting for an answer learns
// why there is none: each request of it whose ID can be found. "If there was an error in
// detecting the id in the Request object, it MUST be Null." (JSON-RPC 2.0, 5) Of answers
// it returns errors in their place.
func (c *Conn) refuseLine(line []byte, code int64, why error) (answers []jsonrpc.Message) {
	found := wire.Traces(context.Background(), line)
	for _, t := range found {
		id, ok := wire.OurID(t.ID)
		switch {
		case !t.Answer:
			c.refuse(t.ID, code, why)
		case ok:
			answers = append(answers, unreadableAnswer(id, why))
		default:
			c.log.Warn("the client sent an answer that cannot be read", "err", why)
		}
	}
	if len(found) == 0 {
		c.refuse(nil, code, why)
	}
	return answers
}

// refuse answers a request that is not passed on. It waits for its turn as others do,
// and is written beside the reading.
func (c *Conn) refuse(id json.RawMessage, code int64, why error) {
	c.log.Warn("the client sent what is no message", "err", why)
	if !wire.IsID(id) {
		id = json.RawMessage("null")
	}
	ours := c.ids.Open(id, nil)
	if !c.admit(ours, request{size: len(id)}) {
		return
	}
	go func() {
		defer contain.Recover("refusing a message", func(error) { c.answered(ours) })
		_ = c.Write(context.Background(), &jsonrpc.Response{ID: ours, Error: &jsonrpc.Error{Code: code, Message: why.Error()}})
	}()
}
