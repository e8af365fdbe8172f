// Package stdio carries MCP over a pair of pipes to one client. Unlike the SDK's
// transport it survives a line that is not a message, and stops reading while
// the client does not read its answers.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	fastjson "github.com/segmentio/encoding/json"
)

// Bounds on the memory that one client may use.
const (
	maxClientLine  = 32 << 20 // bytes of one message
	maxClientCalls = 1000     // requests without an answer yet
	maxClientBytes = 64 << 20 // of their parameters
)

// lastWords is how long the client may take to read answers once it has closed
// its end.
const lastWords = 2 * time.Second

// A Conn exchanges lines of JSON with the client. It replaces the SDK's own
// transport because that does not continue after a line that is not a message,
// and does not stop reading while the client does not read its answers.
type Conn struct {
	log    *slog.Logger
	out    io.Writer
	read   chan received
	writes chan outgoing
	closed chan struct{}
	once   sync.Once
	Broken atomic.Pointer[error] // the write that failed

	mu      sync.Mutex
	waiting map[jsonrpc.ID]int // requests without an answer, and their size
	bytes   int
	freed   chan struct{} // has room for one: an answer left
}

type received struct {
	msg jsonrpc.Message
	err error
}

type outgoing struct {
	line []byte
	done chan error
}

// New begins to read and to write. Both goroutines end with Close, or
// else with the streams: standard input and output cannot be interrupted.
func New(in io.Reader, out io.Writer, log *slog.Logger) *Conn {
	c := &Conn{
		log: log, out: out, read: make(chan received), writes: make(chan outgoing), closed: make(chan struct{}),
		waiting: map[jsonrpc.ID]int{}, freed: make(chan struct{}, 1),
	}
	go c.readLoop(bufio.NewReaderSize(in, 64<<10))
	go c.writeLoop()
	return c
}

// Connect implements mcp.Transport.
func (c *Conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection; stdio has none.
func (c *Conn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read implements mcp.Connection.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-c.read:
		return r.msg, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write implements mcp.Connection.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message for the client: %w", err)
	}
	err = c.writeLine(ctx, line)
	if answer, ok := msg.(*jsonrpc.Response); ok {
		c.answered(answer.ID)
	}
	return err
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

// readLoop passes on the messages, one by one, until the client is done.
func (c *Conn) readLoop(in *bufio.Reader) {
	for {
		line, tooLong, err := readLine(in)
		for _, msg := range c.messages(line, tooLong) {
			if !c.admit(msg) || !c.hand(received{msg: msg}) {
				return
			}
		}
		if err != nil {
			// Answers that the client does not read must not keep us.
			time.AfterFunc(lastWords, func() { c.Close() })
			c.hand(received{err: err})
			return
		}
	}
}

func (c *Conn) hand(r received) bool {
	select {
	case c.read <- r:
		return true
	case <-c.closed:
		return false
	}
}

// lineEnds is the length kept at each end of a line that is too long.
const lineEnds = 1 << 10

// readLine reads one line. A line over the limit is reduced to its two ends.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxClientLine || tooLong && len(line) > 2*lineEnds {
			tooLong = true
			line = append(line[:lineEnds:lineEnds], line[len(line)-lineEnds:]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), tooLong, err
		}
	}
}

// messages reads the messages in a line: one, or several in an array, as older
// versions of the protocol allow. An invalid line is answered here.
func (c *Conn) messages(line []byte, tooLong bool) (all []jsonrpc.Message) {
	if len(line) == 0 {
		return nil
	}
	if tooLong {
		c.refuse(line, jsonrpc.CodeInvalidRequest, fmt.Errorf("the message is longer than %d MiB", maxClientLine>>20))
		return nil
	}
	raws := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &raws); err != nil {
			c.refuse(nil, jsonrpc.CodeParseError, err)
			return nil
		}
	}
	for _, raw := range raws {
		if req := plainRequest(raw); req != nil {
			all = append(all, req)
			continue
		}
		msg, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			code := int64(jsonrpc.CodeInvalidRequest)
			if !json.Valid(raw) {
				code = jsonrpc.CodeParseError
			}
			c.refuse(raw, code, err)
			continue
		}
		all = append(all, msg)
	}
	return all
}

// maxPlain bounds what plainRequest reads, in bytes, and so how deep it nests.
const maxPlain = 32 << 10

// plainRequest reads a short request with nothing unusual in it, for which the
// SDK would make 64 KiB of garbage. It returns nil for anything else; the SDK
// decodes those.
func plainRequest(raw []byte) *jsonrpc.Request {
	if len(raw) > maxPlain {
		return nil
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      any             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	const strictly = fastjson.DontCopyRawMessage | fastjson.DontMatchCaseInsensitiveStructFields | fastjson.DisallowUnknownFields
	rest, err := fastjson.Parse(raw, &m, strictly)
	if err != nil || len(rest) > 0 || m.Version != "2.0" || m.Method == "" {
		return nil
	}
	id, err := jsonrpc.MakeID(m.ID)
	if err != nil {
		return nil
	}
	return &jsonrpc.Request{ID: id, Method: m.Method, Params: m.Params}
}

// idFirst and idLast find the id of a message that cannot be decoded, where
// clients put it.
var (
	idFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*,`)
	})
	idLast = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`,\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*\}$`)
	})
)

// refuse answers a line that is not a message, so that a client waiting for an
// answer learns why there is none. "If there was an error in detecting the id
// in the Request object, it MUST be Null." (JSON-RPC 2.0, 5)
func (c *Conn) refuse(line []byte, code int64, why error) {
	c.log.Warn("the client sent what is no message", "err", why)
	id := []byte("null")
	for _, where := range []*regexp.Regexp{idFirst(), idLast()} {
		if found := where.FindSubmatch(line); found != nil && json.Valid(found[1]) && utf8.Valid(found[1]) {
			id = found[1]
		}
	}
	text, _ := json.Marshal(why.Error()) // strings always encode
	_ = c.writeLine(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, text))
}

// admit waits until there is room for one more request.
func (c *Conn) admit(msg jsonrpc.Message) bool {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return true
	}
	size := len(req.Params)
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 || len(c.waiting) < maxClientCalls && c.bytes+size <= maxClientBytes {
			c.bytes += size - c.waiting[req.ID]
			c.waiting[req.ID] = size
			c.mu.Unlock()
			return true
		}
		c.mu.Unlock()
		select {
		case <-c.freed:
		case <-c.closed:
			return false
		}
	}
}

func (c *Conn) answered(id jsonrpc.ID) {
	c.mu.Lock()
	c.bytes -= c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	select {
	case c.freed <- struct{}{}:
	default:
	}
}
