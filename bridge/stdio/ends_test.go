package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// TestLongLineIsReducedToItsEnds while it is read, and to the same length at every length.
func TestLongLineIsReducedToItsEnds(t *testing.T) {
	line := "begin" + strings.Repeat("x", maxClientLine+1<<20) + "end"
	got, tooLong, err := readLine(&wire.Lines{In: bufio.NewReaderSize(strings.NewReader(line+"\n"), 64<<10)})
	if err != nil || !tooLong || len(got) > 2*lineEnds {
		t.Errorf("%d bytes are kept, too long: %v, %v", len(got), tooLong, err)
	}
	if !strings.HasPrefix(string(got), "begin") || !strings.HasSuffix(string(got), "end") {
		t.Error("an end is missing")
	}
}

// TestClosedConnReadsNoMore: neither the rest of an array nor the next line.
func TestClosedConnReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, send, _ := newTestConn()
		if _, err := io.WriteString(send, "["+ping+","+ping+"]\n"); err != nil {
			t.Fatal(err)
		}
		c.Close()
		taken := make(chan error, 1)
		go func() {
			_, err := io.WriteString(send, ping+"\n")
			taken <- err
		}()
		synctest.Wait()
		send.Close()
		if err := <-taken; err == nil {
			t.Error("a line was read after Close")
		}
	})
}

// TestClosedConnTakesNoRequestIn that waited for its turn.
func TestClosedConnTakesNoRequestIn(t *testing.T) {
	c, send, _ := newTestConn()
	defer send.Close()
	n := 0
	count := func(jsonrpc.Message) bool { n++; return true }
	for range maxClientCalls {
		c.messages([]byte(ping), false, count)
	}
	c.Close()
	if c.messages([]byte(ping), false, count); n != maxClientCalls {
		t.Errorf("%d requests were passed on", n)
	}
}

// TestBrokenInputIsReported as what it is, and not as its end.
func TestBrokenInputIsReported(t *testing.T) {
	c, send, _ := newTestConn()
	defer c.Close()
	broken := errors.New("input/output error")
	send.CloseWithError(broken)
	if _, err := c.Read(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Read: %v, want %v", err, broken)
	}
}

// TestFailedWriteIsKept for those who say why the connection ended.
func TestFailedWriteIsKept(t *testing.T) {
	in, send := io.Pipe()
	defer send.Close()
	receive, out := io.Pipe()
	full := errors.New("no space left on device")
	receive.CloseWithError(full)
	c := New(in, out, slog.New(slog.DiscardHandler))
	defer c.Close()
	err := c.Write(t.Context(), &jsonrpc.Request{Method: "m"})
	if !errors.Is(err, full) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write: %v", err)
	}
	<-c.closed
	if kept := c.Broken.Load(); kept == nil || !errors.Is(*kept, full) {
		t.Errorf("kept: %v, want %v", kept, full)
	}
}

// A pipedInput has ended, and has the descriptor of a pipe.
type pipedInput struct {
	io.Reader
	conn func() (syscall.RawConn, error)
}

func (p pipedInput) SyscallConn() (syscall.RawConn, error) { return p.conn() }

// TestSlowClientLosesNoRequest: it has closed its end, or cannot be looked after, and takes
// an answer now and then. Only one that takes none is gone.
func TestSlowClientLosesNoRequest(t *testing.T) {
	in, send, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	send.Close()
	noDescriptor := func() (syscall.RawConn, error) { return nil, os.ErrClosed }
	const late = 3
	lines := strings.Repeat(ping+"\n", maxClientCalls+late)
	for name, tt := range map[string]struct {
		in  io.Reader
		gap time.Duration
	}{
		"it closed its end":           {pipedInput{strings.NewReader(lines), in.SyscallConn}, finalTimeout - stallCheck/2},
		"its input is no file":        {strings.NewReader(lines), 2 * finalTimeout},
		"its input has no descriptor": {pipedInput{strings.NewReader(lines), noDescriptor}, 2 * finalTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(tt.in, io.Discard, slog.New(slog.DiscardHandler))
				defer c.Close()
				for i := range maxClientCalls + late {
					msg, err := c.Read(t.Context())
					req, ok := msg.(*jsonrpc.Request)
					if err != nil || !ok {
						t.Fatalf("request %d: %v, %v", i, msg, err)
					}
					if i >= maxClientCalls-1 {
						time.Sleep(tt.gap) // of the bubble's clock
						if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		})
	}
}

// TestLargeRequestWaitsForSeveralAnswers of a client that has closed its end: each of them
// shows that it still reads.
func TestLargeRequestWaitsForSeveralAnswers(t *testing.T) {
	in, send, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	send.Close()
	const small, room = 4 << 20, maxClientBytes / (4 << 20)
	call := func(size int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"` + strings.Repeat("x", size) + `"}}` + "\n"
	}
	lines := strings.Repeat(call(small-32), room) + call(3*small-64)
	synctest.Test(t, func(t *testing.T) {
		c := New(pipedInput{strings.NewReader(lines), in.SyscallConn}, io.Discard, slog.New(slog.DiscardHandler))
		defer c.Close()
		var waiting []jsonrpc.ID
		next := func() {
			t.Helper()
			msg, err := c.Read(t.Context())
			req, ok := msg.(*jsonrpc.Request)
			if err != nil || !ok {
				t.Fatalf("request %d: %v, %v", len(waiting), msg, err)
			}
			waiting = append(waiting, req.ID)
		}
		for range room {
			next()
		}
		for _, id := range waiting[:3] {
			time.Sleep(finalTimeout - stallCheck/2) // of the bubble's clock
			if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		next()
	})
}

// TestClientThatIsGoneEndsTheConn holds in both ways in which a client leaves:
// the client does not read our answers.
func TestClientThatIsGoneEndsTheConn(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		in, send := io.Pipe()
		defer send.Close()
		receive, out := io.Pipe()
		receive.Close()
		c := New(in, out, slog.New(slog.DiscardHandler))
		if err := c.Write(t.Context(), &jsonrpc.Response{}); err == nil {
			t.Error("the write succeeded")
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v, want EOF", err)
		}
	})
	t.Run("stalled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, send, answers := newTestConn()
			written := make(chan error, 1)
			id, _ := jsonrpc.MakeID("a")
			go func() { written <- c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}) }()
			send.Close()
			if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("Read: %v, want EOF", err)
			}
			if err := <-written; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("Write: %v, want it to give up", err)
			}
			_, _ = answers.ReadByte() // ends the goroutine that writes
		})
	})
}
