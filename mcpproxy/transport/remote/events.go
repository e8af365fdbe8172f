package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// events is the body of a stream of server-sent events on its way to the SDK.
// It reads event by event, keeps notifications from the SDK, and passes on
// what the session should see, each event within bounds and well formed.
type events struct {
	ctx    context.Context // of the request
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

func newEvents(ctx context.Context, r *Link, body io.ReadCloser, cancel context.CancelFunc, c *message.Call) *events {
	return &events{ctx: ctx, r: r, body: body, in: &wire.Lines{In: bufio.NewReaderSize(body, 16<<10)}, cancel: cancel, call: c}
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

// end ends the stream because a message does not arrive in time.
func (e *events) end(err error) {
	if e.r.transport == config.SSE {
		e.r.markDown(err)
	} else if e.call != nil {
		e.call.Fail(&Error{Lost: true, text: "the server " + err.Error()})
	}
	e.cancel()
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.cancel()
	return e.body.Close()
}

// recordEnd records why the call, or all calls, will get no answer.
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

// event is one server-sent event, as far as it matters here. Its reader must release data.
type event struct {
	name, id, retry string
	data            message.Buffer
	hasData         bool
}

// next reads one event. It skips comments and unknown fields, as the HTML standard asks.
func (e *events) next() (ev event, err error) {
	defer func() {
		if err != nil {
			ev.data.Release()
		}
	}()
	size := 0
	for {
		line, err := e.line(e.r.limit - size)
		if err != nil {
			return ev, err
		}
		size += len(line.Text)
		if !e.lines {
			e.lines, line.Text = true, wire.TrimMark(line.Text)
		}
		if len(line.Text) == 0 {
			if ev.hasData || ev.id != "" || ev.retry != "" {
				return ev, nil
			}
			ev, size = event{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line.Text, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if string(field) == "data" {
			if err := e.addData(&ev, line, value); err != nil {
				return ev, err
			}
			continue
		}
		switch string(field) {
		case "event":
			ev.name = string(bytes.TrimSpace(value[:min(len(value), maxEventField)]))
		case "id":
			ev.id = text.Printable(string(value[:min(len(value), maxEventField)]), 4096)
		case "retry":
			ev.retry = text.Printable(string(value[:min(len(value), maxEventField)]), 20)
		}
		line.Release()
	}
}

// maxEventField bounds fields other than data, in bytes; the rest is ignored.
const maxEventField = 16 << 10

// addData adds the value of a line to the data of an event. Nearly all have one line of
// data, which stays where it is.
func (e *events) addData(ev *event, line message.Buffer, value []byte) error {
	if !ev.hasData {
		ev.data, ev.hasData = line, true
		ev.data.Text = value
		return nil
	}
	defer line.Release()
	return errors.Join(ev.data.Add(e.ctx, []byte{'\n'}), ev.data.Add(e.ctx, value))
}

// line reads one line of at most so many bytes.
func (e *events) line(limit int) (line message.Buffer, err error) {
	line.Limit, line.End = limit, e.end
	for {
		piece, ended, err := e.in.Piece()
		if err == nil { // an event without its end does not count
			err = line.Add(e.ctx, piece)
		}
		if err != nil {
			line.Release()
			if long, ok := errors.AsType[*message.TooLongError](err); ok {
				long.Limit = e.r.limit
			}
			return line, err
		}
		if ended {
			line.Limit = e.r.limit
			return line, nil
		}
	}
}

// handle passes one event on to the SDK, or drops it.
func (e *events) handle(ev event) error {
	defer func() { ev.data.Release() }()
	data := ev.data.Text
	release, err := memory.Take(e.ctx, len(data), memory.Message)
	if err != nil {
		return err
	}
	defer release()
	first := !e.begun
	e.begun = true
	if e.r.transport == config.SSE {
		if first && ev.name != "endpoint" {
			err := e.r.failure(0, "began its stream with the event \""+text.Printable(ev.name, 40)+"\" instead of the address to send to (the endpoint event)")
			err.notMCP = true
			return err
		}
		if first {
			e.write(event{name: "endpoint"}, bytes.TrimSpace(data))
			return nil
		}
	}
	var pass [][]byte
	if ev.hasData && (ev.name == "" || ev.name == "message") && !isFiller(data) {
		for _, raw := range message.Batch(e.ctx, data) {
			raw, isAnswer, err := e.take(raw)
			if err != nil {
				return err
			}
			e.answered = e.answered || isAnswer
			if raw != nil {
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
			e.write(event{id: ev.id, retry: ev.retry}, nil)
		}
	}
	for _, raw := range pass {
		e.write(event{id: ev.id, retry: ev.retry}, raw)
	}
	return nil
}

// take reads one message, and returns its bytes for the SDK, nil if it gets none.
func (e *events) take(raw []byte) (pass []byte, isAnswer bool, err error) {
	msg, err := e.r.notes.Decode(e.ctx, raw, e.call)
	if e.ctx.Err() != nil {
		return nil, false, context.Cause(e.ctx)
	}
	if err != nil {
		msg, err = e.undecoded(raw, err)
	}
	if err != nil || msg == nil {
		return nil, false, err
	}
	answer, isAnswer := msg.(*jsonrpc.Response)
	if isAnswer {
		if err := e.asked.answeredBy(answer, e.call); err != nil {
			return nil, false, err
		}
	}
	if pass, err = e.r.passable(e.ctx, msg, e.asked.Method, e.call); e.ctx.Err() != nil {
		return nil, false, context.Cause(e.ctx)
	}
	return pass, isAnswer, err
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

// undecoded takes an event that is not a message with our ID. On a stream that answers one
// request, it ends the stream; on a shared one, it fails only the request that it is for.
func (e *events) undecoded(raw []byte, why error) (jsonrpc.Message, error) {
	if e.asked.isCall() {
		return e.asked.undecoded(raw, why)
	}
	if e.call != nil { // the rest of an answer that was cut off
		return nil, &Error{Lost: true, text: "the server sent what is not JSON-RPC: " + why.Error()}
	}
	if failed, _ := e.r.calls.Undecoded(e.ctx, raw, why); len(failed) > 0 {
		return failed[0], nil
	}
	return nil, nil
}

// passable returns the bytes of a message for the SDK: without the result, if it answers the
// call c, and with an ID of our own, if it is a request. The error may be that of ctx.
func (r *Link) passable(ctx context.Context, msg jsonrpc.Message, method string, c *message.Call) ([]byte, error) {
	resp, ok := msg.(*jsonrpc.Response)
	if ok && resp.Error != nil {
		r.calls.Answered(resp.ID)
	}
	if !ok || resp.Error != nil {
		return jsonrpc.EncodeMessage(msg)
	}
	reply, err := message.ReplyOf(ctx, resp.Result)
	switch {
	case err != nil:
		return nil, err
	case c != nil && c.HasID(resp.ID):
		resp = c.Keep(resp.ID, reply)
	case r.transport == config.SSE: // the SDK would end the connection for a result that nests too deep
		resp = r.calls.Keep(resp.ID, reply)
	default:
		resp = message.AnswerTo(resp.ID, method, resp.Result)
	}
	return jsonrpc.EncodeMessage(resp)
}

func (e *events) write(ev event, data []byte) {
	for _, field := range []struct{ name, value string }{{"event", ev.name}, {"id", ev.id}, {"retry", ev.retry}} {
		if field.value != "" {
			e.out.WriteString(field.name + ": " + field.value + "\n")
		}
	}
	if data != nil {
		e.out.WriteString("data: ")
		e.out.Write(bytes.ReplaceAll(data, []byte("\n"), []byte(" "))) // JSON has no line ends within strings
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
