package stdio

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"

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
