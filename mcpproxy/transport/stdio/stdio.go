// Package stdio runs a server as a child and talks with it over its pipes. The child is a
// process group of this host, or one that the caller's Launcher brings, such as a sandbox.
//
// A process of this host ends with its whole group, even if this program is killed: a Guard
// ends it then.
// Lines are bounded, and output between messages is kept for error texts.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// Transport is the stdio transport over one process. Unlike the SDK's, it takes long
// messages and servers that log to stdout, keeps results as the server wrote them, and does
// not hold up a cancelled call when the server does not read.
type Transport struct {
	*Process
	notes *message.Notifications
	calls message.Calls
	in    *wire.Lines
	limit int             // of one message
	turn  chan struct{}   // holds one while a line is written
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	once  sync.Once

	behind   bool                  // the line that was read stands behind other text
	unsent   atomic.Int64          // bytes of answers that the server has not read
	spread   message.Buffer        // the lines so far of a message that is written over several
	pending  []jsonrpc.Message     // the rest of a batch
	asked    atomic.Bool           // server/discover was written
	answered atomic.Bool           // something came back
	endErr   atomic.Pointer[error] // why the output ended
	took     atomic.Bool           // at the end of its output, the server had read all its input
}

// newTransport returns the transport over the pipes of p.
func newTransport(p *Process, notes *message.Notifications) *Transport {
	t := &Transport{
		Process: p, notes: notes,
		in: &wire.Lines{In: bufio.NewReaderSize(p.stdout, 64<<10)}, limit: message.MaxSize,
		turn: make(chan struct{}, 1),
	}
	t.ctx, t.end = context.WithCancel(context.Background())
	notes.RespondWith(func(ctx context.Context, answer *jsonrpc.Response) error { return t.Write(ctx, answer) })
	return t
}

// Connect implements mcp.Transport.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements mcp.Connection; stdio has none.
func (t *Transport) SessionID() string { return "" }

// Close implements mcp.Connection. Closing stdin asks the server to exit; the owner of the
// process makes sure that it does.
func (t *Transport) Close() error {
	t.once.Do(func() {
		defer contain.Recover("closing the pipes of a server", nil)
		t.end()
		t.stdin.Close()
		t.stdout.Close()
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
	if _, ok := msg.(*jsonrpc.Response); ok {
		size := int64(len(line) + answerSize)
		defer t.unsent.Add(-size)
		if t.unsent.Add(size) > maxUnsent {
			return nil // the server does not read
		}
	}
	err = t.send(ctx, line)
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == message.MethodDiscover && err == nil {
		t.asked.Store(true)
	}
	return err
}

// Bounds on answers to requests of a server that does not read, in bytes.
const (
	maxUnsent  = 4 << 20
	answerSize = 16 << 10 // of what waits with each
)

// send writes one line. It returns when ctx ends even if the server reads
// nothing; a line that was begun is then finished in the background, as half a
// line would spoil the stream.
func (t *Transport) send(ctx context.Context, line []byte) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return io.ErrClosedPipe
	}
	line = append(line, '\n')
	n, err := t.writeNow(line)
	if err != nil || n == len(line) {
		<-t.turn
		return err
	}
	sent := make(chan error, 1)
	go func() {
		var err error
		defer func() { <-t.turn; sent <- err }()
		defer contain.Error("writing to a server", &err)
		_, err = t.stdin.Write(line[n:])
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return io.ErrClosedPipe
	}
}

// Read implements mcp.Connection. It skips everything that is not a message for us, and
// keeps it for error texts. It ignores its context, which is that of the handshake, and ends
// with Close.
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
		if err := t.readMessage(); err != nil {
			t.endOfInput(err)
			return nil, err
		}
	}
}

// readMessage reads one line and adds to pending what comes of it. A large message takes
// room for being decoded only when it is whole: a server may stop in the middle of one.
func (t *Transport) readMessage() error {
	line, err := t.readLine()
	defer func() { line.Release() }()
	if err == nil {
		line, err = t.join(line)
	}
	if err != nil || line.Text == nil {
		return err
	}
	release, err := memory.Take(t.ctx, len(line.Text), memory.Message)
	if err != nil {
		return err
	}
	defer release()
	for _, raw := range message.Batch(t.ctx, line.Text) {
		if t.behind && !isAnswer(t.ctx, raw) {
			t.output.add("stdout", raw)
			continue
		}
		msgs, err := t.take(raw)
		if err != nil {
			return err
		}
		t.pending = append(t.pending, msgs...)
	}
	t.pending = append(t.pending, t.calls.Strays()...)
	return nil
}

// isAnswer reports whether all of raw is an answer. After other text in a line, nothing else
// counts: logs contain requests and parts of messages.
func isAnswer(ctx context.Context, raw []byte) bool {
	m, err := wire.Read(ctx, raw)
	return err == nil && m.Method == nil && (m.Result != nil || m.Error != nil)
}

// join returns a whole message, or an empty one. "Messages MUST NOT contain embedded
// newlines", but some servers write them indented: from a bracket that is alone in its line
// to the one that closes it, which is not indented.
func (t *Transport) join(line message.Buffer) (whole message.Buffer, err error) {
	bare := bytes.TrimRight(wire.TrimMark(line.Text), " \t")
	opens := len(bare) > 0 && (bare[0] == '{' || bare[0] == '[')
	begun := len(t.spread.Text) > 0
	if begun && (opens || len(t.spread.Text)+len(line.Text) >= t.limit) { // it was something else
		t.output.add("stdout", t.spread.Text)
		begun = t.forgetSpread()
	}
	switch {
	case begun:
		defer line.Release()
		if err := errors.Join(t.spread.Add(t.ctx, line.Text), t.spread.Add(t.ctx, []byte{'\n'})); err != nil {
			return whole, err
		}
		if len(bare) == 1 && (bare[0] == '}' || bare[0] == ']') {
			whole, t.spread = t.spread, message.Buffer{}
		}
		return whole, nil
	case opens && len(bare) == 1:
		defer line.Release()
		t.spread = t.newBuffer()
		return whole, t.spread.Add(t.ctx, append(bytes.Clone(bare), '\n'))
	}
	return line, nil
}

// forgetSpread drops lines that turned out not to be a message, and returns false.
func (t *Transport) forgetSpread() bool {
	t.spread.Release()
	t.spread = message.Buffer{}
	return false
}

// take is decode. If that panics, the calls that the message answers fail, or all calls if
// these are not known.
func (t *Transport) take(raw []byte) (msgs []jsonrpc.Message, err error) {
	defer contain.Recover("taking in a message of a server", func(panicked error) {
		known := false
		if msgs, known = t.calls.Fail(t.ctx, raw, panicked); !known {
			err = panicked
		}
	})
	contain.Point("transport: decoding")
	return t.decode(raw)
}

// endOfInput runs before the SDK learns of the end and closes the pipes. It runs
// once: the SDK reads no further after an error.
func (t *Transport) endOfInput(err error) {
	t.forgetSpread()
	t.took.Store(t.tookInput())
	close(t.read)
	t.markDown()
	t.endErr.CompareAndSwap(nil, &err)
}

// readLine returns the next line that may be JSON, or an empty one for one that cannot.
// A server's log line may be of any length and is not collected.
func (t *Transport) readLine() (line message.Buffer, err error) {
	line = t.newBuffer()
	begun, wanted := false, true
	var before []byte // the end of what was passed over
	t.behind = false
	for {
		piece, ended, err := t.in.Piece()
		if !begun {
			if trimmed := bytes.TrimLeft(wire.TrimMark(piece), " \t"); len(trimmed) > 0 {
				begun = true
				wanted = bytes.IndexByte(beginnings, trimmed[0]) >= 0 || len(t.spread.Text) > 0
				if at := messageIn(trimmed); !wanted {
					t.output.add("stdout", trimmed[:at])
				}
			}
		}
		if begun && !wanted {
			piece = append(before, piece...)
			at := messageIn(piece)
			if wanted = at < len(piece); wanted {
				t.behind, piece = true, piece[at:]
			} else {
				before = bytes.Clone(piece[max(0, len(piece)-maxOpening):])
			}
		}
		if begun && wanted {
			if err := line.Add(t.ctx, piece); err != nil {
				return line, err
			}
		}
		switch {
		case ended:
			return line, nil
		case err == nil:
		case len(line.Text) > 0 && errors.Is(err, io.EOF):
			return line, nil // the last line of a server that ended without a newline
		default:
			return line, io.EOF // also "file already closed", when we ended it ourselves
		}
	}
}

// opening matches the beginning of a message after other text, such as a log line without an
// end.
var opening = regexp.MustCompile(`\{[ \t]{0,8}"(?:jsonrpc|id|result|error)"`)

// maxOpening is how long a part of an opening can be.
const maxOpening = len(`{        "jsonrpc"`)

// messageIn returns where a message may begin in a text, or the length of text.
func messageIn(text []byte) int {
	if at := opening.FindIndex(text); at != nil {
		return at[0]
	}
	return len(text)
}

// newBuffer returns a buffer for one message. One that does not end ends the session.
func (t *Transport) newBuffer() message.Buffer {
	return message.Buffer{Limit: t.limit, End: func(err error) {
		t.endErr.CompareAndSwap(nil, &err)
		_ = t.Close()
	}}
}

// beginnings are the bytes with which a message may begin, in UTF-8 or UTF-16.
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

// Written returns the last lines that the server wrote beside its messages.
func (t *Transport) Written() []string { return t.output.lines() }

// Begin implements the link of package transport.
func (t *Transport) Begin(context.Context, *mcp.ClientSession, bool) {
	t.output.mu.Lock()
	defer t.output.mu.Unlock()
	t.output.served = true
}

// Fail implements the link of package transport. A server that ended without having read
// server/discover had another reason to.
func (t *Transport) Fail(err, cause error) (suspect bool, why error) {
	defer func() { why = t.Explain(why, t.began) }()
	_ = t.Close()
	t.Stop()
	suspect = t.asked.Load() && (errors.Is(cause, message.ErrNoDiscover) || t.took.Load() || t.answered.Load())
	var long *message.TooLongError
	switch {
	case cause != nil: // we ended it: its exit status is our doing, and only its output is of interest
		return suspect, t.output.appendTo(cause)
	case errors.As(t.EndError(), &long): // it may have exited because we closed its output
		return suspect, t.output.appendTo(long)
	case message.IsLost(err):
		return suspect, &ExitError{t.Ended()}
	}
	return suspect, t.output.appendTo(notMCP(err))
}

// HangsOnDiscover implements the link of package transport. A server that has not read the
// request yet is still starting.
func (t *Transport) HangsOnDiscover(ctx context.Context, timeout time.Duration) bool {
	tick := time.NewTicker(max(timeout/50, time.Millisecond))
	defer tick.Stop()
	var taken time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			switch {
			case t.answered.Load():
				return false
			case !t.asked.Load() || !t.tookInput():
				taken = time.Time{}
			case taken.IsZero():
				taken = now
			case now.Sub(taken) >= timeout:
				return true
			}
		}
	}
}

// decode returns the messages that the session should see: one or none, or for an answer
// that cannot be read, errors for the calls that it is for.
func (t *Transport) decode(raw []byte) ([]jsonrpc.Message, error) {
	msg, err := t.notes.Decode(t.ctx, raw, nil)
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
	}
	if err != nil {
		return t.undecoded(raw, err), nil
	}
	if msg == nil {
		return nil, nil
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || req.IsCall() {
		t.answered.Store(true)
	}
	res, isAnswer := msg.(*jsonrpc.Response)
	if !isAnswer {
		return []jsonrpc.Message{msg}, nil
	}
	if stray := t.calls.CheckID(res.ID, res.Error); stray != nil {
		return t.undecoded(raw, stray), nil
	}
	if res.Error == nil {
		reply, err := message.ReplyOf(t.ctx, res.Result)
		if err != nil {
			return nil, err
		}
		return []jsonrpc.Message{t.calls.Keep(res.ID, reply)}, nil
	}
	t.calls.Answered(res.ID)
	return []jsonrpc.Message{msg}, nil
}

// undecoded takes bytes that are not a message: a broken answer that a request waits for,
// or a line of a log.
func (t *Transport) undecoded(raw []byte, why error) []jsonrpc.Message {
	if bad, ok := errors.AsType[*wire.Unreadable](why); ok && bad.IsUTF16 {
		t.calls.Stray(why)
		return nil
	}
	failed, taken := t.calls.Undecoded(t.ctx, raw, why)
	if taken {
		t.answered.Store(true)
	} else {
		t.output.add("stdout", raw)
	}
	return failed
}
