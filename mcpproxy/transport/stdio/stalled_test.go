package stdio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// server is one whose output a test writes.
type server struct {
	*Transport
	output *io.PipeWriter
	read   chan string // IDs of what the session sees, or an error
}

// newServer returns a server whose output is read until the session ends.
func newServer(t *testing.T) *server {
	out, in := io.Pipe()
	s := &server{output: in, read: make(chan string, 10)}
	ctx, end := context.WithCancel(t.Context())
	context.AfterFunc(ctx, func() { out.CloseWithError(io.ErrClosedPipe) })
	s.Transport = &Transport{
		ctx: ctx, end: end, notes: message.NewNotifications(func() {}), limit: message.MaxSize, Process: OverPipes(nil, nil, message.NewNotifications(func() {})).Process,
		in: &wire.Lines{In: bufio.NewReaderSize(out, 64<<10)},
	}
	last, _ := jsonrpc.MakeID(1000.0) // all answers have IDs that were asked
	s.calls.Add(ctx, &jsonrpc.Request{ID: last, Method: "ping"})
	go func() {
		defer contain.Recover("reading", nil)
		for {
			msg, err := s.Read(t.Context())
			if err != nil {
				s.read <- err.Error()
				return
			}
			answer := msg.(*jsonrpc.Response)
			s.read <- string(jsonID(answer.ID))
		}
	}()
	return s
}

func jsonID(id jsonrpc.ID) []byte {
	text, _ := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id})
	return wire.Member(text, "id")
}

func (s *server) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.output, text); err != nil {
		t.Fatal(err)
	}
}

const large = 1 << 20

func answerOf(id string, size int) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"text":"` + strings.Repeat("x", size) + `"}}` + "\n"
}

// TestServerThatStopsInALargeMessage keeps nothing from others, and its session ends.
func TestServerThatStopsInALargeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalled, other := newServer(t), newServer(t)
		half := answerOf("1", 40<<20)
		stalled.write(t, half[:len(half)/2])
		other.write(t, answerOf("2", large))
		if got := <-other.read; got != "2" {
			t.Errorf("the other server's answer: %s", got)
		}
		<-stalled.read // minutes later
		if err := stalled.EndError(); !errors.Is(err, memory.ErrLate) {
			t.Errorf("the session ended with %v", err)
		}
		other.write(t, answerOf("3", large))
		if got := <-other.read; got != "3" {
			t.Errorf("the other server's next answer: %s", got)
		}
		_ = other.Close()
	})
}

// TestMessagesKeepTheirOrder when a large one waits for room, which ends with the session.
func TestMessagesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, err := memory.Take(t.Context(), memory.Large, 1)
		if err != nil {
			t.Fatal(err)
		}
		s, closed, small := newServer(t), newServer(t), newServer(t)
		s.write(t, answerOf("1", large))
		closed.write(t, answerOf("1", large))
		small.write(t, answerOf("7", 1000))
		if got := <-small.read; got != "7" {
			t.Errorf("a small answer: %s", got)
		}
		_ = closed.Close()
		if got := <-closed.read; got != context.Canceled.Error() {
			t.Errorf("the session that was closed: %s", got)
		}
		synctest.Wait()
		if len(s.read) > 0 {
			t.Errorf("it was decoded without room: %s", <-s.read)
		}
		go func() {
			defer contain.Recover("writing", nil)
			_, _ = io.WriteString(s.output, answerOf("2", 10))
		}()
		synctest.Wait()
		release()
		if got := <-s.read + <-s.read; got != "12" {
			t.Errorf("the answers come as %s", got)
		}
		_ = s.Close()
		_ = small.Close()
	})
}
