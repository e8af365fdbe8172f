// Package stdio carries MCP over a pair of pipes to one client. Unlike the SDK's
// transport it survives a line that is not a message, gives IDs and progress tokens back
// as they were written, and stops reading while the client does not read its answers.
// What was read before the client closed its end is answered.
package stdio

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// Bounds on the memory that one client may use.
const (
	maxClientLine  = 32 << 20 // bytes of one message
	maxClientCalls = 1000     // requests without an answer yet
	maxClientBytes = 64 << 20 // of their parameters
)

// finalTimeout is how long answers may take once the client has closed its end. What has
// none after answerTimeout gets an error, so that there is time to write it.
const (
	finalTimeout  = 2 * time.Second
	answerTimeout = finalTimeout - finalTimeout/4
)

// A Conn exchanges lines of JSON with the client. It replaces the SDK's own
// transport because that does not continue after a line that is not a message,
// and does not stop reading while the client does not read its answers.
type Conn struct {
	log    *slog.Logger
	in     io.Reader
	out    io.Writer
	read   chan received
	writes chan outgoing
	closed chan struct{}
	once   sync.Once
	Broken atomic.Pointer[error] // the write that failed

	ids     wire.IDs
	mu      sync.Mutex
	waiting map[jsonrpc.ID]request // without an answer, by our IDs
	asked   map[jsonrpc.ID]bool    // requests to the client, which has not answered
	bytes   int
	freed   chan struct{} // has room for one: an answer left
}

// A request is one of the client that waits for its answer.
type request struct {
	method string
	size   int
}

// lasts reports whether a request is answered only when it is cancelled.
func (r request) lasts() bool { return r.method == methodListen }

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
		log: log, in: in, out: out, read: make(chan received), writes: make(chan outgoing), closed: make(chan struct{}),
		waiting: map[jsonrpc.ID]request{}, asked: map[jsonrpc.ID]bool{}, freed: make(chan struct{}, 1),
	}
	go c.readLoop(&wire.Lines{In: bufio.NewReaderSize(in, 64<<10)})
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

// readLoop passes on the messages, one by one, until the client is done.
func (c *Conn) readLoop(in *wire.Lines) {
	defer contain.Recover("reading from the client", func(error) { c.Close() })
	for {
		line, tooLong, err := readLine(in)
		if !c.messages(line, tooLong, func(msg jsonrpc.Message) bool { return c.hand(received{msg: msg}) }) {
			return
		}
		if err != nil {
			c.finish(err)
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

// finish passes the end of the input on when everything has been answered: the SDK
// cancels what is still open then, and writes no more answers. Answers that the client
// does not read must not keep us.
func (c *Conn) finish(err error) {
	time.AfterFunc(finalTimeout, contain.Func("closing the client's pipes", func() { c.Close() }))
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	for open := c.unanswered(); len(open) > 0; open = c.unanswered() {
		select {
		case <-c.freed:
			continue
		case <-late.C:
			for _, id := range open {
				_ = c.Write(context.Background(), &jsonrpc.Response{ID: id, Error: errEnded})
			}
		case <-c.closed:
		}
		break
	}
	c.hand(received{err: err})
}

// errEnded answers what was not done in time.
var errEnded = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client closed standard input before this was done; it was stopped"}

// unanswered returns the requests that an answer is still to come to.
func (c *Conn) unanswered() (all []jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.waiting {
		if !r.lasts() {
			all = append(all, id)
		}
	}
	return all
}

// stallCheck is how often a client that takes no answers is looked after.
const stallCheck = 250 * time.Millisecond

// admit takes a request in when there is room for one more. Behind requests that wait
// here, the end of the input cannot be read: a client that is gone is noticed by its
// pipe.
func (c *Conn) admit(id jsonrpc.ID, r request) bool {
	stalled := time.Duration(0)
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 || len(c.waiting) < maxClientCalls && c.bytes+r.size <= maxClientBytes {
			c.bytes += r.size
			c.waiting[id] = r
			c.mu.Unlock()
			return true
		}
		c.mu.Unlock()
		check := time.NewTimer(stallCheck)
		select {
		case <-c.freed:
			stalled = 0
		case <-check.C:
			if stalled += stallCheck; stalled >= finalTimeout && hungUp(c.in) {
				c.Close()
			}
		case <-c.closed:
			check.Stop()
			return false
		}
		check.Stop()
	}
}

// answered makes room for the next request.
func (c *Conn) answered(id jsonrpc.ID) {
	c.ids.Close(id)
	c.mu.Lock()
	c.bytes -= c.waiting[id].size
	delete(c.waiting, id)
	c.mu.Unlock()
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// hungUp reports whether the other end of in is closed, though not all of in was read.
func hungUp(in io.Reader) (gone bool) {
	file, ok := in.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
		n, err := unix.Poll(events, 0)
		gone = err == nil && n > 0 && events[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR) != 0
	})
	return gone && err == nil
}
