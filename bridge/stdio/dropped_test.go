package stdio

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestWhatNothingWaitsForIsLogged, gets no answer, and goes no further: an error with an ID
// that the client does not wait for would end some clients.
func TestWhatNothingWaitsForIsLogged(t *testing.T) {
	for rest, logged := range map[string]string{
		`"id":"other","result":{}}`:                                               `it was not asked" id="\"other\"`,
		`"id":1.5,"error":{"code":1,"message":"m"}}`:                              `it was not asked" id=1.5`,
		`"id":"other","result":NaN}`:                                              "the client sent an answer that cannot be read",
		`"method":"notifications/progress","params":["a"]}`:                       "cannot be read\" method=notifications/progress",
		`"method":"notifications/cancelled","params":{"requestId":1,"reason":5}}`: `\"reason\" must be text`,
	} {
		line := `{"jsonrpc":"2.0",` + rest
		var log bytes.Buffer
		in, send := io.Pipe()
		receive, out := io.Pipe()
		c := New(in, out, slog.New(slog.NewTextHandler(&log, nil)))
		go func() {
			_, _ = io.WriteString(send, line+"\n"+`{"jsonrpc":"2.0","method":"end"}`+"\n")
		}()
		msg, err := c.Read(t.Context())
		if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != "end" {
			t.Errorf("%s is passed on as %v, %v", line, msg, err)
		}
		if !strings.Contains(log.String(), logged) {
			t.Errorf("%s: the log is %q, want %q", line, log.String(), logged)
		}
		c.mu.Lock()
		if n := len(c.waiting); n != 0 {
			t.Errorf("%s: %d answers are to be written", line, n)
		}
		c.mu.Unlock()
		c.Close()
		receive.Close()
	}
}

// TestRefusedMessageIsLogged, since clients may drop its answer.
func TestRefusedMessageIsLogged(t *testing.T) {
	var log bytes.Buffer
	in, send := io.Pipe()
	c := New(in, io.Discard, slog.New(slog.NewTextHandler(&log, nil)))
	defer c.Close()
	go func() {
		_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":5}`+"\n"+`{"jsonrpc":"2.0","method":"end"}`+"\n")
	}()
	if _, err := c.Read(t.Context()); err != nil || !strings.Contains(log.String(), "there is no method") {
		t.Errorf("%v: the log is %q", err, log.String())
	}
}

// TestNotificationWithAnIDOfNull is a notification: some clients write the member always.
func TestNotificationWithAnIDOfNull(t *testing.T) {
	c, send, _ := newTestConn()
	defer c.Close()
	go func() {
		_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","method":"end"}`+"\n")
	}()
	msg, err := c.Read(t.Context())
	if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.IsCall() || req.Method != "notifications/initialized" {
		t.Errorf("%v, %v", msg, err)
	}
}

// TestAnswerWithoutAResultComesOnce: after an answer, or after we cancelled the request,
// the same line is a request that lacks its method.
func TestAnswerWithoutAResultComesOnce(t *testing.T) {
	for name, cancelled := range map[string]bool{"answered": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			c, send, lines := newTestConn()
			defer c.Close()
			id, _ := jsonrpc.MakeID(7.0)
			messages := []*jsonrpc.Request{{ID: id, Method: "roots/list"}}
			if cancelled {
				messages = append(messages, &jsonrpc.Request{Method: methodCancelled, Params: []byte(`{"requestId":7}`)})
			}
			for _, msg := range messages {
				go func() { _ = c.Write(t.Context(), msg) }()
				if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, fmt.Sprintf(`"method":%q`, msg.Method)) {
					t.Fatalf("%v: %s", err, got)
				}
			}
			go func() {
				if !cancelled {
					_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":7}`+"\n")
				}
				_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":7}`+"\n"+`{"jsonrpc":"2.0","method":"end"}`+"\n")
			}()
			if !cancelled {
				msg, err := c.Read(t.Context())
				if r, ok := msg.(*jsonrpc.Response); err != nil || !ok || r.ID != id {
					t.Fatalf("the answer: %v, %v", msg, err)
				}
			}
			msg, err := c.Read(t.Context())
			if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Method != "end" {
				t.Fatalf("a second answer: %v, %v", msg, err)
			}
			if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, `"id":7,"error":{"code":-32600`) {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}
