package stdio

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// takeRoom leaves so many bytes of the room for messages that arrive.
func takeRoom(t *testing.T, left int) {
	t.Helper()
	var others memory.Buffer
	if err := others.Grow(t.Context(), (memory.Arriving-left)/2, func() {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(others.Release)
}

// TestMessagesGiveTheirRoomBack, however they are written and end: a server could take it from
// all others, for good.
func TestMessagesGiveTheirRoomBack(t *testing.T) {
	const size = 300 << 10 // large
	text := strings.Repeat("x", size)
	for _, tt := range []struct{ name, output string }{
		{"in one line", answerOf("1", size)},
		{"in several lines", "{\n" + `"jsonrpc":"2.0","id":1,"result":{"a":"` + text + `"}` + "\n}\n"},
		{"after a wide bracket", "{" + strings.Repeat(" ", size) + "\n" + `"jsonrpc":"2.0","id":1,"result":{}` + "\n}\n"},
		{"that are none after all", "{\n" + text + "\n" + answerOf("1", 1)},
		{"that do not end", answerOf("1", 1) + "{\n" + text + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takeRoom(t, 16*size)
				for i := range 16 {
					w := wireOver(t, "", message.MaxSize)
					w.in.In = bufio.NewReader(strings.NewReader(tt.output))
					w.calls.Add(t.Context(), request(1, "ping"))
					if _, err := w.Read(t.Context()); err != nil {
						t.Fatalf("message %d: %v", i, err)
					}
					if _, err := w.Read(t.Context()); !errors.Is(err, io.EOF) {
						t.Fatalf("after message %d: %v", i, err)
					}
				}
			})
		})
	}
}

// TestAMessageInLinesEndsTheSessionIfThereIsNoRoom: the rest of it would be another message.
func TestAMessageInLinesEndsTheSessionIfThereIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeRoom(t, 0)
		line := `"` + strings.Repeat("x", 100<<10) + `",` + "\n"
		w := wireOver(t, "{\n"+strings.Repeat(line, 4)+"}\n", message.MaxSize)
		if _, err := w.Read(t.Context()); !errors.Is(err, memory.ErrFull) {
			t.Errorf("err = %v", err)
		}
		if err := w.EndError(); !errors.Is(err, memory.ErrFull) {
			t.Errorf("the session ended with %v", err)
		}
	})
}
