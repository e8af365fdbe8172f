package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A client conn of a test, and the client's ends of its streams.
func newTestConn() (c *Conn, send *io.PipeWriter, answers *bufio.Reader) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	return New(in, out, slog.New(slog.DiscardHandler)), send, bufio.NewReader(receive)
}

func TestClientSendsWhatIsNoMessage(t *testing.T) {
	long := strings.Repeat("x", maxClientLine)
	for name, tt := range map[string]struct{ line, want string }{
		"garbage":            {"\xff\xfe", `"id":null,"error":{"code":-32700`},
		"half":               {`{"jsonrpc":"2.0","id":4,"method":"x"`, `"id":4,"error":{"code":-32700`},
		"null":               {`null`, `"id":null,"error":{"code":-32600`},
		"a number":           {`5`, `"id":null,"error":{"code":-32600`},
		"no version":         {`{"id":5,"method":"ping"}`, `"id":5,"error":{"code":-32600`},
		"method no string":   {`{"jsonrpc":"2.0","id":"a","method":5}`, `"id":"a","error":{"code":-32600`},
		"too deep":           {strings.Repeat("[", 100_000), `"id":null,"error":{"code":-32700`},
		"in an array":        {`[5]`, `"id":null,"error":{"code":-32600`},
		"too long, id first": {`{"jsonrpc":"2.0","id":6,"method":"` + long + `"}`, `"id":6,"error":{"code":-32600`},
		"too long, id last":  {`{"method":"` + long + `","jsonrpc":"2.0","id":7}`, `"id":7,"error":{"code":-32600`},
		"much too long":      {long + long + "\t" + long, `"id":null,"error":{"code":-32600`},
		"an id in its text":  {`{"method":"` + long + `,\"id\":8}`, `"id":null,"error":{"code":-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			c, send, answers := newTestConn()
			defer c.Close()
			go func() {
				_, _ = io.WriteString(send, "\n  \n"+tt.line+"\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\r\n")
			}()
			got, err := answers.ReadString('\n')
			if err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%v: answer %.300s, want %s", err, got, tt.want)
			}
			msg, err := c.Read(t.Context())
			if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != "ping" {
				t.Errorf("the next message: %v, %v", msg, err)
			}
		})
	}
}

func TestClientSendsAnArray(t *testing.T) {
	c, send, _ := newTestConn()
	defer c.Close()
	go func() {
		_, _ = io.WriteString(send, `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]`+"\n")
	}()
	for _, want := range []string{"a", "b"} {
		msg, err := c.Read(t.Context())
		if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != want {
			t.Errorf("%v, %v, want method %s", msg, err, want)
		}
	}
}

// TestStalledClientIsNotReadOn holds that a client that takes no answers
// cannot send calls without end.
func TestStalledClientIsNotReadOn(t *testing.T) {
	for name, tt := range map[string]struct {
		size int // of one call
		most int // calls that are taken in
	}{
		"small": {10, maxClientCalls},
		"large": {8 << 20, maxClientBytes / (8 << 20)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, send, _ := newTestConn()
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for i := 1; ; i++ {
						line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":{"x":"%s"}}`, i, strings.Repeat("x", tt.size-8))
						if _, err := io.WriteString(send, line+"\n"); err != nil {
							return
						}
					}
				}()
				taken := make(chan jsonrpc.Message)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer close(taken)
					for {
						msg, err := c.Read(ctx)
						if err != nil {
							return
						}
						taken <- msg
					}
				}()
				var last *jsonrpc.Request
				n := 0
				for blocked := false; !blocked; {
					synctest.Wait()
					select {
					case msg := <-taken:
						n, last = n+1, msg.(*jsonrpc.Request)
					default:
						blocked = true
					}
				}
				if n != tt.most {
					t.Errorf("%d calls were taken in, want %d", n, tt.most)
				}
				c.answered(last.ID)
				if msg := (<-taken).(*jsonrpc.Request); msg.ID == last.ID {
					t.Error("no further call after an answer")
				}
				cancel()
				for range taken {
				}
				c.Close()
				send.Close()
				<-stopped
			})
		})
	}
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

// TestPlainRequestsAreReadAsTheSDKDoes, and what is none is not.
func TestPlainRequestsAreReadAsTheSDKDoes(t *testing.T) {
	for _, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, ` { "params" : {"a":[1,"\u00e9"]} , "method":"tools/call", "id":"x", "jsonrpc":"2.0" } `,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping","params":null}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0","id":1,"method":7}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping","more":1}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"method":"ping"`, `[]`, `1`, ``,
	} {
		req := plainRequest([]byte(raw))
		msg, err := jsonrpc.DecodeMessage([]byte(raw))
		if req == nil {
			continue // the SDK's turn
		}
		if want, ok := msg.(*jsonrpc.Request); err != nil || !ok || want.ID != req.ID || want.Method != req.Method || string(want.Params) != string(req.Params) {
			t.Errorf("%s is %+v, of the SDK %+v, %v", raw, req, msg, err)
		}
	}
	if plainRequest([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)) == nil {
		t.Error("the plainest is not read")
	}
	if plainRequest([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":`+strings.Repeat("[", maxPlain)+strings.Repeat("]", maxPlain)+`}`)) != nil {
		t.Error("a long one is read")
	}
}
