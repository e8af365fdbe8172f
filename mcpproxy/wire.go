package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxMessage bounds one line of a server. The SDK's own stdio transport
	// stops at 16 MiB, which a tool that returns a file or a table can exceed.
	maxMessage = 128 << 20

	methodDiscover = "server/discover"
)

// wire is the stdio transport over one process. It takes the place of the
// SDK's for what that does not do: long messages, servers that log to stdout,
// requests past the session, and writes that do not hold up a cancelled call
// when the server does not read.
type wire struct {
	proc     *process
	inbox    *inbox
	requests requests
	in       *bufio.Reader
	limit    int           // of one message
	turn     chan struct{} // holds one while somebody writes
	closed   chan struct{}
	once     sync.Once

	pending  []jsonrpc.Message // the rest of a batch
	asked    atomic.Bool       // server/discover was written
	answered atomic.Bool       // something came back
	took     atomic.Bool       // at the end of its output, the server had read all its input
}

func newWire(p *process, box *inbox) *wire {
	return &wire{
		proc: p, inbox: box, requests: requests{waiting: map[int64]chan<- outcome{}},
		in: bufio.NewReaderSize(p.stdout, 64<<10), limit: maxMessage,
		turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Connect implements mcp.Transport.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements mcp.Connection; stdio has none.
func (w *wire) SessionID() string { return "" }

// Close implements mcp.Connection. Closing stdin is what asks the server to
// end; its owner sees to it that it does.
func (w *wire) Close() error {
	w.once.Do(func() {
		close(w.closed)
		w.requests.end(io.ErrClosedPipe)
		w.proc.stdin.Close()
		w.proc.stdout.Close()
	})
	return nil
}

// Write implements mcp.Connection.
func (w *wire) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	err = w.send(ctx, line)
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == methodDiscover && err == nil {
		w.asked.Store(true)
	}
	return err
}

// send writes one line. It returns when ctx ends even if the server reads
// nothing; a line that was begun is then finished in the background, as half a
// line would spoil the stream.
func (w *wire) send(ctx context.Context, line []byte) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.closed:
		return io.ErrClosedPipe
	}
	line = append(line, '\n')
	n, err := w.proc.offer(line)
	if err != nil || n == len(line) {
		<-w.turn
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := w.proc.stdin.Write(line[n:])
		<-w.turn
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.closed:
		return io.ErrClosedPipe
	}
}

// Read implements mcp.Connection. It passes over everything that is not a
// message for us, and keeps it for the diagnosis.
func (w *wire) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(w.pending) > 0 {
			msg := w.pending[0]
			w.pending = w.pending[1:]
			return msg, nil
		}
		line, err := w.readLine()
		if err != nil {
			w.endOfInput(err)
			return nil, err
		}
		if line == nil {
			continue
		}
		for _, raw := range batch(line) {
			if msg, ok := w.decode(raw); ok {
				w.pending = append(w.pending, msg)
			}
		}
	}
}

// endOfInput runs before the SDK learns of the end and closes the pipes. It runs
// once: the SDK reads no further after an error.
func (w *wire) endOfInput(err error) {
	w.took.Store(w.proc.tookInput())
	close(w.proc.read)
	w.proc.fall()
	w.requests.end(err)
}

// readLine returns the next line that may be JSON, or nil for one that cannot.
// A server's log line may be of any length and is not collected.
func (w *wire) readLine() ([]byte, error) {
	var line []byte
	begun, wanted := false, true
	for {
		piece, err := w.in.ReadSlice('\n')
		if !begun {
			if trimmed := bytes.TrimLeft(piece, " \t\r\n"); len(trimmed) > 0 {
				begun = true
				wanted = trimmed[0] == '{' || trimmed[0] == '['
				if !wanted {
					w.proc.diag.add("stdout", trimmed)
				}
			}
		}
		if begun && wanted {
			if len(line)+len(piece) > w.limit {
				return nil, &messageTooLongError{w.limit}
			}
			if cap(line)-len(line) < len(piece) {
				line = slices.Grow(line, max(len(piece), 2*len(line))) // append grows by a quarter, and copies again and again
			}
			line = append(line, piece...)
		}
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil // the last line of a server that ended without a newline
		default:
			return nil, io.EOF // also "file already closed", when we ended it ourselves
		}
	}
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

// decode returns a message the session should see.
func (w *wire) decode(raw []byte) (jsonrpc.Message, bool) {
	// Nearly every message, and the SDK makes much garbage of each.
	if a := answerOf(raw); a != nil {
		w.answered.Store(true)
		ours := w.requests.take(a.id, outcome{reply: a.reply})
		return &jsonrpc.Response{ID: a.id, Result: a.result}, !ours
	}
	msg, err := w.inbox.sort(raw)
	if err != nil {
		w.proc.diag.add("stdout", raw)
		return nil, false
	}
	if msg == nil {
		return nil, false
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || req.IsCall() {
		w.answered.Store(true)
	}
	res, ok := msg.(*jsonrpc.Response)
	return msg, !ok || !w.requests.take(res.ID, outcome{replyOf(res.Result), res.Error})
}

// sort decodes one message of a server and returns it if the session should
// see it. Notifications stop here.
func (b *inbox) sort(raw []byte) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		if msg = salvage(raw, err); msg == nil {
			return nil, err
		}
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok || req.IsCall() && b.admit():
		return msg, nil
	case req.IsCall():
		return nil, nil
	case forSDK(req.Method):
		return msg, nil
	}
	b.notified(req.Method, req.Params)
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
