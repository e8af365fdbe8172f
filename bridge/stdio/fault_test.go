package stdio

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultInAMessageIsItsAnswer, under its ID, and the next one is read.
func TestFaultInAMessageIsItsAnswer(t *testing.T) {
	var seen atomic.Bool
	contain.Inject(t, func(at string) bool { return at == "stdio: reading a message" && seen.CompareAndSwap(false, true) })
	c, send, answers := newTestConn()
	defer c.Close()
	go func() {
		_, _ = io.WriteString(send, `[{"jsonrpc":"2.0","id":"first","method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`+"\n")
	}()
	got, err := answers.ReadString('\n')
	if err != nil || !strings.Contains(got, `"id":"first","error":{"code":-32603`) {
		t.Errorf("%v: answer %s", err, got)
	}
	if msg, err := c.Read(t.Context()); err != nil {
		t.Errorf("the next message: %v, %v", msg, err)
	}
}

// TestFaultInAnAnswerIsAnAnswer: the client waits for one, and the connection stays.
func TestFaultInAnAnswerIsAnAnswer(t *testing.T) {
	var seen atomic.Bool
	contain.Inject(t, func(at string) bool {
		return at == "encoding an answer for the client" && seen.CompareAndSwap(false, true)
	})
	c, send, answers := newTestConn()
	defer c.Close()
	for _, want := range []string{`"error":{"code":-32603`, `"result":{}`} {
		go func() { _, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":"a","method":"ping"}`+"\n") }()
		msg, err := c.Read(t.Context())
		req, ok := msg.(*jsonrpc.Request)
		if err != nil || !ok {
			t.Fatal(msg, err)
		}
		go func() { _ = c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}) }()
		if got, err := answers.ReadString('\n'); err != nil || !strings.Contains(got, want) || !strings.Contains(got, `"id":"a"`) {
			t.Errorf("%v: answer %s, want %s", err, got, want)
		}
	}
}

// A faulty stream, or log, that panics at its first use.
type faulty struct{ used bool }

func (f *faulty) use(p []byte) (int, error) {
	if !f.used {
		f.used = true
		panic("planted")
	}
	return len(p), nil
}

func (f *faulty) Read(p []byte) (int, error)  { return f.use(p) }
func (f *faulty) Write(p []byte) (int, error) { return f.use(p) }

// TestFaultInAStreamEndsTheConn, so that no caller waits for an answer that cannot come.
func TestFaultInAStreamEndsTheConn(t *testing.T) {
	for _, name := range []string{"reading", "writing"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipe, send := io.Pipe()
				defer send.Close()
				in := io.Reader(&faulty{})
				if name == "writing" {
					in = pipe
				}
				c := New(in, &faulty{}, slog.New(slog.DiscardHandler))
				defer c.Close()
				if name == "writing" {
					if err := c.Write(t.Context(), &jsonrpc.Request{Method: "m"}); !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("Write: %v", err)
					}
				}
				if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
					t.Errorf("Read: %v, want EOF", err)
				}
			})
		})
	}
}

// TestFaultInRefusingALineIsItsAnswer, and the next line is read.
func TestFaultInRefusingALineIsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, send := io.Pipe()
		receive, out := io.Pipe()
		c := New(in, out, slog.New(slog.NewTextHandler(&faulty{}, nil)))
		defer c.Close()
		got := make([]byte, 1<<10)
		go func() {
			_, _ = io.WriteString(send, `[{"jsonrpc":"2.0"`+"\n")
			_, _ = io.WriteString(send, ping+"\n")
			send.Close()
		}()
		msg, err := c.Read(t.Context())
		if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != "ping" {
			t.Fatalf("the next line: %v, %v", msg, err)
		}
		n, err := receive.Read(got)
		if answer := string(got[:n]); err != nil || !strings.Contains(answer, `"id":null,"error":{"code":-32603`) {
			t.Errorf("%v: answer %s", err, answer)
		}
	})
}
