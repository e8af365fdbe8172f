package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// Write implements mcp.Connection.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) (err error) {
	defer contain.Error("writing to the client", &err)
	switch m := msg.(type) {
	case *jsonrpc.Response:
		return c.writeAnswer(ctx, m)
	case *jsonrpc.Request:
		if !m.IsCall() {
			params, known := c.asAsked(m)
			if !known {
				return nil // about a request that has been answered
			}
			msg = &jsonrpc.Request{Method: m.Method, Params: params}
		}
		c.note(m)
	}
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message for the client: %w", err)
	}
	return c.writeLine(ctx, line)
}

// note keeps which requests to the client wait for an answer.
func (c *Conn) note(m *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.IsCall() {
		c.asked[m.ID] = true
	} else if m.Method == methodCancelled {
		if id, ok := wire.OurID(wire.Member(m.Params, "requestId")); ok {
			delete(c.asked, id)
		}
	}
}

// writeAnswer writes an answer under the ID that the client gave. What was answered
// already when the input ended is not answered again.
func (c *Conn) writeAnswer(ctx context.Context, answer *jsonrpc.Response) error {
	id, ok := c.ids.Written(answer.ID)
	if _, ours := answer.ID.Raw().(int64); !ok && ours {
		return nil
	}
	if !ok {
		id = json.RawMessage("null")
	}
	defer c.answered(answer.ID)
	c.mu.Lock()
	r := c.waiting[answer.ID]
	c.mu.Unlock()
	line, err := encodeAnswer(answer, r, id)
	if panicked, ok := errors.AsType[*contain.PanicError](err); ok { // the client still waits
		line, err = wire.Encode(&jsonrpc.Response{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: panicked.Error()}}, id)
	}
	if err != nil {
		return fmt.Errorf("encoding an answer for the client: %w", err)
	}
	return c.writeLine(ctx, line)
}

// encodeAnswer returns the line of an answer to a request with an ID of the client.
func encodeAnswer(answer *jsonrpc.Response, r request, id json.RawMessage) (line []byte, err error) {
	defer contain.Error("encoding an answer for the client", &err)
	out := jsonrpc.Response{Result: answer.Result}
	if r.lasts() {
		out.Result = wire.Replace(out.Result, id, "_meta", subscriptionKey)
	}
	if answer.Error != nil {
		out.Error = inWords(r.method, answer.Error)
	}
	return wire.Encode(&out, id)
}

const (
	methodListen    = "subscriptions/listen"
	methodProgress  = "notifications/progress"
	methodCancelled = "notifications/cancelled"
	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
	tokenKey        = "progressToken"
)

// asAsked returns the parameters of a notification with the tokens and IDs that the
// client gave, and reports false if it is about none of its requests.
func (c *Conn) asAsked(m *jsonrpc.Request) (json.RawMessage, bool) {
	if m.Method == methodProgress {
		id, ok := wire.OurID(wire.Member(m.Params, tokenKey))
		if !ok {
			return nil, false
		}
		token, ok := c.ids.Token(id)
		return wire.Replace(m.Params, token, tokenKey), ok
	}
	if bytes.Contains(m.Params, []byte(subscriptionKey)) {
		if id, ok := wire.OurID(wire.Member(m.Params, "_meta", subscriptionKey)); ok {
			written, known := c.ids.Written(id)
			return wire.Replace(m.Params, written, "_meta", subscriptionKey), known
		}
	}
	return m.Params, true
}

// inWords returns an error of the SDK for a client: with a code, and without Go's types
// and the parameters as a whole, which it puts into some.
func inWords(method string, err error) *jsonrpc.Error {
	said := jsonrpc.Error{Message: err.Error()}
	if coded, ok := errors.AsType[*jsonrpc.Error](err); ok {
		said.Code, said.Data = coded.Code, coded.Data
	}
	if strings.Contains(said.Message, "unmarshaling ") {
		said.Code, said.Message = jsonrpc.CodeInvalidParams, fmt.Sprintf("the params of %s are not as MCP has them", method)
	}
	if strings.Contains(said.Message, `missing required "params"`) {
		said.Code, said.Message = jsonrpc.CodeInvalidParams, method+": there are no params"
	}
	switch {
	case said.Code != 0:
	case strings.Contains(said.Message, "during session initialization"):
		said.Code = jsonrpc.CodeInvalidRequest
	default:
		said.Code = jsonrpc.CodeInternalError
	}
	return &said
}

func (c *Conn) writeLine(ctx context.Context, line []byte) error {
	w := outgoing{append(line, '\n'), make(chan error, 1)}
	select {
	case c.writes <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	// A line once begun must be completed: half a line corrupts the stream.
	select {
	case err := <-w.done:
		return err
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

func (c *Conn) writeLoop() {
	defer contain.Recover("writing to the client", func(error) { c.Close() })
	for {
		select {
		case w := <-c.writes:
			_, err := c.out.Write(w.line)
			if err != nil {
				c.Broken.Store(&err)
			}
			w.done <- err
			if err != nil {
				c.Close() // the client no longer reads
				return
			}
		case <-c.closed:
			return
		}
	}
}
