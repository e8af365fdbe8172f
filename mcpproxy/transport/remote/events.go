package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// events is the body of a stream of server-sent events on its way to the SDK.
// It reads event by event, keeps notifications from the SDK, and passes on
// what the session should see, each event within bounds and well formed.
type events struct {
	r      *Link
	body   io.ReadCloser
	in     *wire.Lines
	cancel context.CancelFunc
	call   *message.Call // whose answer the stream is, if it is one
	asked  outgoingBody  // the request that it answers, if that was sent for it

	out      bytes.Buffer
	lines    bool // one was read
	begun    bool // an event came
	answered bool
	resume   bool // the server gave the events ids: it can be asked again for the rest
	err      error
}

func newEvents(r *Link, body io.ReadCloser, cancel context.CancelFunc, c *message.Call) *events {
	return &events{r: r, body: body, in: &wire.Lines{In: bufio.NewReaderSize(body, 16<<10)}, cancel: cancel, call: c}
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		err := contain.Call("reading an event of a server", func() error {
			ev, err := e.next()
			if err == nil {
				err = e.handle(ev)
			}
			return err
		})
		if err != nil {
			e.err = err
			e.recordEnd(err)
		}
	}
	n, _ := e.out.Read(p)
	if e.out.Len() == 0 && e.out.Cap() > 1<<20 {
		e.out = bytes.Buffer{} // do not keep the room of a giant
	}
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.cancel()
	return e.body.Close()
}

// recordEnd records why there is no answer to a call, or no more to any.
func (e *events) recordEnd(err error) {
	var failed *Error
	var long *message.TooLongError
	switch {
	case errors.As(err, &failed):
	case errors.As(err, &long):
		failed = &Error{Lost: true, text: "the server " + err.Error()}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		failed = &Error{Lost: true, text: "the server ended its answer before it was whole"}
	default:
		failed = &Error{Lost: true, text: "its answer broke off: " + PlainText(err)}
	}
	switch {
	case e.r.transport == config.SSE && long != nil:
		e.r.markDown(err)
	case e.r.transport == config.SSE && failed.notMCP:
		e.r.markDown(failed)
	case e.r.transport == config.SSE:
		e.r.markDown(errors.New("closed its stream of events"))
	case e.call != nil && !e.answered && !e.resume:
		e.call.Fail(failed)
	}
}

// event is one server-sent event, as far as it matters here.
type event struct {
	name, id, retry string
	data            []byte
	hasData         bool
}

// next reads one event. Comments and fields that are unknown are passed over,
// as the HTML standard asks.
func (e *events) next() (event, error) {
	var ev event
	size := 0
	for {
		line, err := e.line(e.r.limit - size)
		if err != nil {
			return ev, err
		}
		size += len(line)
		if !e.lines {
			e.lines, line = true, wire.TrimMark(line)
		}
		if len(line) == 0 {
			if ev.hasData || ev.id != "" || ev.retry != "" {
				return ev, nil
			}
			ev, size = event{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = string(bytes.TrimSpace(value))
		case "id":
			ev.id = text.Printable(string(value), 4096)
		case "retry":
			ev.retry = text.Printable(string(value), 20)
		case "data":
			if ev.hasData {
				ev.data = append(ev.data, '\n')
			}
			ev.data, ev.hasData = append(ev.data, value...), true
		}
	}
}

func (e *events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		piece, ended, err := e.in.Piece()
		if len(line)+len(piece) > limit {
			return nil, &message.TooLongError{Limit: e.r.limit}
		}
		if err != nil {
			return nil, err // an event without its end does not count
		}
		if line = append(line, piece...); ended {
			return line, nil
		}
	}
}

// handle passes one event on to the SDK, or keeps it from it.
func (e *events) handle(ev event) error {
	first := !e.begun
	e.begun = true
	if e.r.transport == config.SSE {
		if first && ev.name != "endpoint" {
			err := e.r.failure(0, "began its stream with the event \""+text.Printable(ev.name, 40)+"\" instead of the address to send to (the endpoint event)")
			err.notMCP = true
			return err
		}
		if first {
			e.write(event{name: "endpoint", data: bytes.TrimSpace(ev.data)})
			return nil
		}
	}
	var pass [][]byte
	if ev.hasData && (ev.name == "" || ev.name == "message") && !isFiller(ev.data) {
		for _, raw := range message.Batch(ev.data) {
			msg, err := e.r.notes.Decode(raw, e.call)
			if err != nil {
				msg, err = e.undecoded(raw, err)
			}
			if err != nil {
				return err
			}
			if msg == nil {
				continue
			}
			if answer, ok := msg.(*jsonrpc.Response); ok {
				if err := e.toUs(answer); err != nil {
					return err
				}
				e.answered = true
			}
			if raw, err = e.r.passable(msg, e.asked.Method, e.call); err == nil {
				pass = append(pass, raw)
			}
		}
	}
	for _, failed := range e.r.calls.Strays() {
		if raw, err := jsonrpc.EncodeMessage(failed); err == nil {
			pass = append(pass, raw)
		}
	}
	if e.r.transport != config.SSE && ev.id != "" {
		e.resume = true
		if len(pass) == 0 {
			e.write(event{id: ev.id, retry: ev.retry})
		}
	}
	for _, raw := range pass {
		e.write(event{id: ev.id, retry: ev.retry, data: raw})
	}
	return nil
}

// isFiller reports whether the data of an event only mark the end of a stream or keep it
// open, as those of some servers and gateways do.
func isFiller(data []byte) bool {
	switch strings.ToLower(string(bytes.TrimSpace(data[:min(len(data), 100)]))) {
	case "", "[done]", "done", "ping", "pong", "heartbeat", "keepalive", "keep-alive":
		return true
	}
	return false
}

// undecoded looks at what is no message with an ID of ours. On a stream that answers one
// request, it ends that; on one for all, only the request that it is for.
func (e *events) undecoded(raw []byte, why error) (jsonrpc.Message, error) {
	if e.asked.isCall() {
		return e.asked.undecoded(raw, why)
	}
	if e.call != nil { // the rest of an answer that was cut off
		return nil, &Error{Lost: true, text: "the server sent what is not JSON-RPC: " + why.Error()}
	}
	var stray *message.StrayError
	var bad *wire.Unreadable
	var useless *message.UnreadableError
	switch {
	case errors.As(why, &stray):
		e.r.calls.Stray(stray)
	case errors.As(why, &bad), errors.As(why, &useless):
		for _, failed := range e.r.calls.Unreadable(raw, why) {
			return failed, nil
		}
	}
	return nil, nil
}

// toUs checks that an answer on a stream for one request is to that.
func (e *events) toUs(answer *jsonrpc.Response) error {
	if !e.asked.isCall() && e.call == nil {
		return nil
	}
	return e.asked.answeredBy(answer, e.call)
}

// passable gives the bytes of a message for the SDK: without the result, if it is the
// result of the call c, and with an ID of our own, if it is a request.
func (r *Link) passable(msg jsonrpc.Message, method string, c *message.Call) ([]byte, error) {
	resp, ok := msg.(*jsonrpc.Response)
	switch {
	case !ok || resp.Error != nil:
	case c != nil && c.HasID(resp.ID):
		msg = c.Keep(resp.ID, message.ReplyOf(resp.Result))
	default:
		if r.transport == config.SSE { // the SDK would end the connection for a result that nests too deep
			resp = r.calls.Keep(resp.ID, message.ReplyOf(resp.Result))
		} else {
			resp = message.AnswerTo(resp.ID, method, resp.Result)
		}
		if msg = resp; resp.Error == nil { // the encoder would look at all of it again
			return slices.Concat(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%v,"result":`, resp.ID.Raw()), resp.Result, []byte("}")), nil
		}
	}
	return jsonrpc.EncodeMessage(msg)
}

func (e *events) write(ev event) {
	for _, field := range []struct{ name, value string }{{"event", ev.name}, {"id", ev.id}, {"retry", ev.retry}} {
		if field.value != "" {
			e.out.WriteString(field.name + ": " + field.value + "\n")
		}
	}
	if ev.data != nil {
		e.out.WriteString("data: ")
		e.out.Write(bytes.ReplaceAll(ev.data, []byte("\n"), []byte(" "))) // JSON has no line ends within strings
		e.out.WriteByte('\n')
	}
	e.out.WriteByte('\n')
}

// eventConn is the SDK's connection to an SSE server, over which a message that
// is refused costs no more than its own call. The SDK would take the whole
// connection for broken.
type eventConn struct {
	mcp.Connection
	r *Link
}

func newEventConn(conn mcp.Connection, r *Link) *eventConn {
	c := &eventConn{conn, r}
	r.events.Store(c)
	return c
}

// Read implements mcp.Connection.
func (c *eventConn) Read(ctx context.Context) (_ jsonrpc.Message, err error) {
	defer contain.Error("taking in a message of a server", &err)
	msg, err := c.Connection.Read(ctx)
	if resp, ok := msg.(*jsonrpc.Response); ok && err == nil && resp.Error == nil {
		return c.r.calls.Keep(resp.ID, message.ReplyOf(resp.Result)), nil
	} else if ok && err == nil {
		c.r.calls.Answered(resp.ID)
	}
	return msg, err
}

// Write implements mcp.Connection.
func (c *eventConn) Write(ctx context.Context, msg jsonrpc.Message) (err error) {
	defer contain.Error("writing to a server", &err)
	c.r.calls.Add(ctx, msg)
	err = c.Connection.Write(ctx, msg)
	if err == nil || c.r.ctx.Err() != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || !req.IsCall() {
		return nil // a notification, which has no answer that could be missed
	}
	made := message.CallOf(ctx)
	if made == nil || made.Failure() == nil {
		return err
	}
	made.GiveUp() // no answer will come
	return nil
}
