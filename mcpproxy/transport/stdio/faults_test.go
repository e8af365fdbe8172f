package stdio

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
)

// failOnce has the program panic at a point, the first time that it passes it.
func failOnce(t *testing.T, point string) {
	var seen atomic.Bool
	contain.Inject(t, func(at string) bool { return at == point && seen.CompareAndSwap(false, true) })
}

// TestAFaultInAnAnswerFailsItsRequest, and the next answer is read.
func TestAFaultInAnAnswerFailsItsRequest(t *testing.T) {
	w := wireOver(t, answerOf("1", 1)+answerOf("2", 1), 4096)
	w.calls.Add(t.Context(), request(1, "ping"))
	w.calls.Add(t.Context(), request(2, "ping"))
	failOnce(t, "transport: decoding")
	for i := range 2 {
		msg, err := w.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answer := msg.(*jsonrpc.Response)
		if failed := answer.Error != nil && strings.Contains(answer.Error.Error(), "an internal error in toolcell"); failed != (i == 0) {
			t.Errorf("answer %v: %v", answer.ID.Raw(), answer.Error)
		}
	}
}

// TestAFaultWithoutAKnownRequestEndsTheSession: a call might wait for ever.
func TestAFaultWithoutAKnownRequestEndsTheSession(t *testing.T) {
	for _, point := range []string{"transport: decoding", "reading from a server"} {
		t.Run(point, func(t *testing.T) {
			w := wireOver(t, `{"jsonrpc":"2.0","id":"a","method":"ping"}`+"\n"+answerOf("1", 1), 4096)
			w.calls.Add(t.Context(), request(1, "ping"))
			failOnce(t, point)
			if msg, err := w.Read(t.Context()); !errors.Is(err, contain.ErrInternal) {
				t.Errorf("it read %v, %v", msg, err)
			}
			if err := w.EndError(); !errors.Is(err, contain.ErrInternal) {
				t.Errorf("the session ended with %v", err)
			}
			select {
			case <-w.Down():
			default:
				t.Error("it does not count as down")
			}
		})
	}
}

// TestAMessageIsNotSeenAfterTheEnd: reading is cut short then, and half of a message may look
// like a whole one.
func TestAMessageIsNotSeenAfterTheEnd(t *testing.T) {
	for name, message := range map[string]string{
		"a result":  answerOf("1", 1),
		"an error":  `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy"}}`,
		"a request": `{"jsonrpc":"2.0","id":"a","method":"ping"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := wireOver(t, message, 4096)
			ctx, end := context.WithCancelCause(t.Context())
			w.ctx = ctx
			w.calls.Add(t.Context(), request(1, "ping"))
			why := errors.New("closed")
			contain.Inject(t, func(at string) bool {
				if at == "transport: decoding" {
					end(why)
				}
				return false
			})
			if msg, err := w.Read(t.Context()); !errors.Is(err, why) {
				t.Errorf("it read %v, %v", msg, err)
			}
		})
	}
}

// TestAFaultWhileWritingIsAnError, also of a line that is finished in the background.
func TestAFaultWhileWritingIsAnError(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		p := newPiped(t)
		failOnce(t, "writing to a server")
		if err := p.Write(t.Context(), request(1, "ping")); !errors.Is(err, contain.ErrInternal) {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("in the background", func(t *testing.T) {
		p := newPiped(t)
		failOnce(t, "writing to a server")
		go func() {
			defer contain.Recover("reading", nil)
			_, _ = io.Copy(io.Discard, p.input)
		}()
		if err := p.send(t.Context(), make([]byte, 4<<20)); !errors.Is(err, contain.ErrInternal) {
			t.Errorf("err = %v", err)
		}
		if err := p.send(t.Context(), []byte("next")); err != nil {
			t.Errorf("the next line: %v", err)
		}
	})
}

// broken is a pipe that panics when it is closed.
type broken struct{ io.ReadCloser }

func (broken) Close() error { panic("a fault of the test") }

// TestAFaultWhileClosingStaysInside: Close has no one to return it to.
func TestAFaultWhileClosingStaysInside(t *testing.T) {
	p := newPiped(t)
	p.stdout = broken{p.stdout}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := p.got(t); got != "" {
		t.Errorf("the server got %q", got)
	}
}
