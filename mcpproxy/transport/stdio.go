package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioTransport is the stdio transport over one process. It takes the place of the
// SDK's for what that does not do: long messages, servers that log to stdout,
// results as the server wrote them, and writes that do not hold up a cancelled
// call when the server does not read.
type stdioTransport struct {
	proc   *process
	notes  *notifications
	calls  calls
	in     *bufio.Reader
	limit  int           // of one message
	turn   chan struct{} // holds one while a line is written
	closed chan struct{}
	once   sync.Once

	pending  []jsonrpc.Message     // the rest of a batch
	asked    atomic.Bool           // server/discover was written
	answered atomic.Bool           // something came back
	endErr   atomic.Pointer[error] // why the output ended
	took     atomic.Bool           // at the end of its output, the server had read all its input
}

func newStdioTransport(p *process, notes *notifications) *stdioTransport {
	return &stdioTransport{
		proc: p, notes: notes,
		in: bufio.NewReaderSize(p.stdout, 64<<10), limit: maxMessage,
		turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Connect implements mcp.Transport.
func (t *stdioTransport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements mcp.Connection; stdio has none.
func (t *stdioTransport) SessionID() string { return "" }

// Close implements mcp.Connection. Closing stdin is what asks the server to
// end; its owner sees to it that it does.
func (t *stdioTransport) Close() error {
	t.once.Do(func() {
		close(t.closed)
		t.proc.stdin.Close()
		t.proc.stdout.Close()
	})
	return nil
}

// Write implements mcp.Connection.
func (t *stdioTransport) Write(ctx context.Context, msg jsonrpc.Message) error {
	t.calls.add(ctx, msg)
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	err = t.send(ctx, line)
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == methodDiscover && err == nil {
		t.asked.Store(true)
	}
	return err
}

// send writes one line. It returns when ctx ends even if the server reads
// nothing; a line that was begun is then finished in the background, as half a
// line would spoil the stream.
func (t *stdioTransport) send(ctx context.Context, line []byte) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return io.ErrClosedPipe
	}
	line = append(line, '\n')
	n, err := t.proc.writeNow(line)
	if err != nil || n == len(line) {
		<-t.turn
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := t.proc.stdin.Write(line[n:])
		<-t.turn
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return io.ErrClosedPipe
	}
}

// Read implements mcp.Connection. It passes over everything that is not a
// message for us, and keeps it for error texts.
func (t *stdioTransport) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(t.pending) > 0 {
			msg := t.pending[0]
			t.pending = t.pending[1:]
			return msg, nil
		}
		line, err := t.readLine()
		if err != nil {
			t.endOfInput(err)
			return nil, err
		}
		if line == nil {
			continue
		}
		for _, raw := range batch(line) {
			if msg, ok := t.decode(raw); ok {
				t.pending = append(t.pending, msg)
			}
		}
	}
}

// endOfInput runs before the SDK learns of the end and closes the pipes. It runs
// once: the SDK reads no further after an error.
func (t *stdioTransport) endOfInput(err error) {
	t.took.Store(t.proc.tookInput())
	close(t.proc.read)
	t.proc.markDown()
	t.endErr.CompareAndSwap(nil, &err)
}

// readLine returns the next line that may be JSON, or nil for one that cannot.
// A server's log line may be of any length and is not collected.
func (t *stdioTransport) readLine() ([]byte, error) {
	var line []byte
	begun, wanted := false, true
	for {
		piece, err := t.in.ReadSlice('\n')
		if !begun {
			if trimmed := bytes.TrimLeft(piece, " \t\r\n"); len(trimmed) > 0 {
				begun = true
				wanted = trimmed[0] == '{' || trimmed[0] == '['
				if !wanted {
					t.proc.output.add("stdout", trimmed)
				}
			}
		}
		if begun && wanted {
			if len(line)+len(piece) > t.limit {
				return nil, &MessageTooLongError{t.limit}
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

// waitingCalls returns the calls that wait for an answer.
func (t *stdioTransport) waitingCalls() *calls { return &t.calls }

// endError returns why the output of the server ended, or nil.
func (t *stdioTransport) endError() error {
	if err := t.endErr.Load(); err != nil {
		return *err
	}
	return nil
}

// tookDiscover reports whether a handshake that ended with cause may have failed on
// server/discover: the server had read it. One that ended without having read it had
// another reason to.
func (t *stdioTransport) tookDiscover(cause error) bool {
	return t.asked.Load() && (errors.Is(cause, errNoDiscover) || t.took.Load() || t.answered.Load())
}

// watchDiscover cancels the handshake when the server has read the request
// but leaves it unanswered. One that has not read it yet is still starting.
func (t *stdioTransport) watchDiscover(ctx context.Context, patience time.Duration, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(patience/50, time.Millisecond))
	defer tick.Stop()
	var taken time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			switch {
			case t.answered.Load():
				return
			case !t.asked.Load() || !t.proc.tookInput():
				taken = time.Time{}
			case taken.IsZero():
				taken = now
			case now.Sub(taken) >= patience:
				cancel(errNoDiscover)
				return
			}
		}
	}
}

// decode returns a message the session should see.
func (t *stdioTransport) decode(raw []byte) (jsonrpc.Message, bool) {
	// Nearly every message, and the SDK makes much garbage of each.
	if a := answerOf(raw); a != nil {
		t.answered.Store(true)
		return t.calls.keep(a.id, a.Reply), true
	}
	msg, err := t.notes.decode(raw)
	if err != nil {
		t.proc.output.add("stdout", raw)
		return nil, false
	}
	if msg == nil {
		return nil, false
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || req.IsCall() {
		t.answered.Store(true)
	}
	if res, ok := msg.(*jsonrpc.Response); ok && res.Error == nil {
		return t.calls.keep(res.ID, replyOf(res.Result)), true
	}
	return msg, true
}
