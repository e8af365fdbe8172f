// Package stdio runs a server as a child process and talks with it over its pipes.
//
// A process ends with its whole group, also when this program is killed: a Guard
// sees to that. Lines are bounded, and what a server logs between them is kept for
// error texts.
package stdio

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
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// Transport is the stdio transport over one process. It takes the place of the
// SDK's for what that does not do: long messages, servers that log to stdout,
// results as the server wrote them, and writes that do not hold up a cancelled
// call when the server does not read.
type Transport struct {
	proc   *Process
	notes  *message.Notifications
	calls  message.Calls
	in     *wire.Lines
	limit  int           // of one message
	turn   chan struct{} // holds one while a line is written
	closed chan struct{}
	once   sync.Once

	spread   []byte                // the lines so far of a message that is written over several
	pending  []jsonrpc.Message     // the rest of a batch
	asked    atomic.Bool           // server/discover was written
	answered atomic.Bool           // something came back
	endErr   atomic.Pointer[error] // why the output ended
	took     atomic.Bool           // at the end of its output, the server had read all its input
}

// NewTransport returns the transport over the pipes of p.
func NewTransport(p *Process, notes *message.Notifications) *Transport {
	t := &Transport{
		proc: p, notes: notes,
		in: &wire.Lines{In: bufio.NewReaderSize(p.stdout, 64<<10)}, limit: message.MaxSize,
		turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	notes.RespondWith(func(ctx context.Context, answer *jsonrpc.Response) error { return t.Write(ctx, answer) })
	return t
}

// Connect implements mcp.Transport.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements mcp.Connection; stdio has none.
func (t *Transport) SessionID() string { return "" }

// Close implements mcp.Connection. Closing stdin is what asks the server to
// end; its owner sees to it that it does.
func (t *Transport) Close() error {
	t.once.Do(func() {
		defer contain.Recover("closing the pipes of a server", nil)
		close(t.closed)
		t.proc.stdin.Close()
		t.proc.stdout.Close()
	})
	return nil
}

// Write implements mcp.Connection.
func (t *Transport) Write(ctx context.Context, msg jsonrpc.Message) (err error) {
	defer contain.Error("writing to a server", &err)
	t.calls.Add(ctx, msg)
	line, err := t.notes.Encode(msg)
	if err != nil {
		return err
	}
	err = t.send(ctx, line)
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == message.MethodDiscover && err == nil {
		t.asked.Store(true)
	}
	return err
}

// send writes one line. It returns when ctx ends even if the server reads
// nothing; a line that was begun is then finished in the background, as half a
// line would spoil the stream.
func (t *Transport) send(ctx context.Context, line []byte) error {
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
		var err error
		defer func() { <-t.turn; sent <- err }()
		defer contain.Error("writing to a server", &err)
		_, err = t.proc.stdin.Write(line[n:])
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
func (t *Transport) Read(context.Context) (_ jsonrpc.Message, err error) {
	defer contain.Recover("reading from a server", func(panicked error) {
		err = panicked // the SDK ends the session
		t.endOfInput(err)
	})
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
		if line = t.join(line); line == nil {
			continue
		}
		for _, raw := range message.Batch(line) {
			msgs, err := t.take(raw)
			if err != nil {
				t.endOfInput(err)
				return nil, err
			}
			t.pending = append(t.pending, msgs...)
		}
		t.pending = append(t.pending, t.calls.Strays()...)
	}
}

// join returns a whole message, or nil. "Messages MUST NOT contain embedded newlines", but
// some servers write them indented: from a bracket that is alone in its line to the one
// that closes it, which is not indented.
func (t *Transport) join(line []byte) []byte {
	bare := bytes.TrimRight(wire.TrimMark(line), " \t")
	opens := len(bare) > 0 && (bare[0] == '{' || bare[0] == '[')
	if t.spread != nil && (opens || len(t.spread)+len(line) > t.limit) { // it was something else
		t.proc.output.add("stdout", t.spread)
		t.spread = nil
	}
	switch {
	case t.spread != nil:
		t.spread = append(append(t.spread, line...), '\n')
		if len(bare) != 1 || bare[0] != '}' && bare[0] != ']' {
			return nil
		}
		line, t.spread = t.spread, nil
	case opens && len(bare) == 1:
		t.spread = append(bytes.Clone(bare), '\n')
		return nil
	}
	return line
}

// take is decode. If that panics, the message is an error of the call that it answers,
// and of all if that is not known.
func (t *Transport) take(raw []byte) (msgs []jsonrpc.Message, err error) {
	defer contain.Recover("taking in a message of a server", func(panicked error) {
		known := false
		if msgs, known = t.calls.Fail(raw, panicked); !known {
			err = panicked
		}
	})
	contain.Point("transport: decoding")
	return t.decode(raw), nil
}

// endOfInput runs before the SDK learns of the end and closes the pipes. It runs
// once: the SDK reads no further after an error.
func (t *Transport) endOfInput(err error) {
	t.took.Store(t.proc.tookInput())
	close(t.proc.read)
	t.proc.markDown()
	t.endErr.CompareAndSwap(nil, &err)
}

// readLine returns the next line that may be JSON, or nil for one that cannot.
// A server's log line may be of any length and is not collected.
func (t *Transport) readLine() ([]byte, error) {
	var line []byte
	begun, wanted := false, true
	for {
		piece, ended, err := t.in.Piece()
		if !begun {
			if trimmed := bytes.TrimLeft(wire.TrimMark(piece), " \t"); len(trimmed) > 0 {
				begun = true
				wanted = bytes.IndexByte(beginnings, trimmed[0]) >= 0 || t.spread != nil
				if !wanted {
					t.proc.output.add("stdout", trimmed)
				}
			}
		}
		if begun && wanted {
			if len(line)+len(piece) > t.limit {
				return nil, &message.TooLongError{Limit: t.limit}
			}
			if cap(line)-len(line) < len(piece) {
				line = slices.Grow(line, max(len(piece), 2*len(line))) // append grows by a quarter, and copies again and again
			}
			line = append(line, piece...)
		}
		switch {
		case ended:
			return line, nil
		case err == nil:
		case len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil // the last line of a server that ended without a newline
		default:
			return nil, io.EOF // also "file already closed", when we ended it ourselves
		}
	}
}

// beginnings are the first bytes of what may be a message, or one in UTF-16.
var beginnings = []byte("{[\xff\xfe\x00")

// WaitingCalls returns the calls that wait for an answer.
func (t *Transport) WaitingCalls() *message.Calls { return &t.calls }

// EndError returns why the output of the server ended, or nil.
func (t *Transport) EndError() error {
	if err := t.endErr.Load(); err != nil {
		return *err
	}
	return nil
}

// TookDiscover reports whether a handshake that ended with cause may have failed on
// server/discover: the server had read it. One that ended without having read it had
// another reason to.
func (t *Transport) TookDiscover(cause error) bool {
	return t.asked.Load() && (errors.Is(cause, message.ErrNoDiscover) || t.took.Load() || t.answered.Load())
}

// WatchDiscover cancels the handshake when the server has read the request
// but leaves it unanswered. One that has not read it yet is still starting.
func (t *Transport) WatchDiscover(ctx context.Context, patience time.Duration, cancel context.CancelCauseFunc) {
	defer contain.Recover("waiting for server/discover", func(err error) { cancel(err) })
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
				cancel(message.ErrNoDiscover)
				return
			}
		}
	}
}

// decode returns the messages that the session should see: one or none, or for an answer
// that cannot be read, errors for the calls that it is for.
func (t *Transport) decode(raw []byte) []jsonrpc.Message {
	// Nearly every message, and the SDK makes much garbage of each.
	if a := message.AnswerOf(raw); a != nil {
		t.answered.Store(true)
		return []jsonrpc.Message{t.calls.Keep(a.ID, a.Reply)}
	}
	msg, err := t.notes.Decode(raw, nil)
	if err != nil {
		return t.undecoded(raw, err)
	}
	if msg == nil {
		return nil
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || req.IsCall() {
		t.answered.Store(true)
	}
	if res, ok := msg.(*jsonrpc.Response); ok && res.Error == nil {
		return []jsonrpc.Message{t.calls.Keep(res.ID, message.ReplyOf(res.Result))}
	} else if ok {
		t.calls.Answered(res.ID)
	}
	return []jsonrpc.Message{msg}
}

// undecoded looks at what is no message: it may be an answer that somebody waits for, or
// a line of a log.
func (t *Transport) undecoded(raw []byte, why error) (failed []jsonrpc.Message) {
	var stray *message.StrayError
	var bad *wire.Unreadable
	var useless *message.UnreadableError
	switch {
	case errors.As(why, &stray):
		t.answered.Store(true)
		t.calls.Stray(stray)
		return nil
	case errors.As(why, &bad) && bad.IsUTF16:
		t.calls.Stray(why)
		return nil
	case errors.As(why, &bad), errors.As(why, &useless):
		if failed = t.calls.Unreadable(raw, why); len(failed) > 0 {
			t.answered.Store(true)
			return failed
		}
	}
	t.proc.output.add("stdout", raw)
	return nil
}
