package stdio

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// TestAnswersThatAServerDoesNotReadAreBounded: it asks for ever and reads nothing.
func TestAnswersThatAServerDoesNotReadAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w := &Transport{ctx: ctx, end: end, notes: message.NewNotifications(func() {}), turn: make(chan struct{}, 1)}
		w.turn <- struct{}{} // a line is on its way
		var dropped, kept atomic.Int64
		answer := &jsonrpc.Response{Error: errors.New(strings.Repeat("x", 1000))}
		for range 2000 {
			go func() {
				if err := w.Write(ctx, answer); err == nil {
					dropped.Add(1)
				} else {
					kept.Add(1)
				}
			}()
		}
		synctest.Wait()
		if n := w.unsent.Load(); n > maxUnsent || dropped.Load() < 1000 || dropped.Load() == 2000 {
			t.Errorf("%d bytes wait, %d answers were dropped", n, dropped.Load())
		}
		if err := w.Write(ctx, answer); err != nil {
			t.Errorf("one more: %v", err) // as if it was sent: the session goes on
		}
		end()
		synctest.Wait()
		if kept.Load()+dropped.Load() != 2000 || w.unsent.Load() != 0 {
			t.Errorf("%d were kept, %d bytes still count", kept.Load(), w.unsent.Load())
		}
	})
}
