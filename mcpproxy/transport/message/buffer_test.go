package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

func TestBufferTakesUpToItsLimit(t *testing.T) {
	const limit = 1 << 20
	for size, fits := range map[int]bool{0: true, 1: true, 300 << 10: true, limit: true, limit + 1: false} {
		text := bytes.Repeat([]byte("x"), size)
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(text), "by halves": iotest.HalfReader(bytes.NewReader(text)), "with its end": iotest.DataErrReader(bytes.NewReader(text))} {
			all, parts := Buffer{Limit: limit}, Buffer{Limit: limit}
			err := all.ReadAll(t.Context(), r)
			var other error
			for from := 0; from < size && other == nil; from += 1000 {
				other = parts.Add(t.Context(), text[from:min(size, from+1000)])
			}
			var long *TooLongError
			if got := errors.As(err, &long); got == fits || got != errors.As(other, &long) {
				t.Errorf("%d bytes %s: %v, in parts: %v", size, name, err, other)
			}
			if fits && (!bytes.Equal(all.Text, text) || !bytes.Equal(parts.Text, text)) {
				t.Errorf("%d bytes %s: %d, in parts %d", size, name, len(all.Text), len(parts.Text))
			}
			all.Release()
			parts.Release()
		}
	}
	var b memory.Buffer
	if err := b.Grow(t.Context(), memory.Arriving, func() {}); err != nil {
		t.Errorf("some room was not given back: %v", err)
	}
	b.Release()
}

// TestLargePartsOfMessagesAreRefused in words, where somebody waits for an answer.
func TestLargePartsOfMessagesAreRefused(t *testing.T) {
	n := NewNotifications(func() {})
	n.RespondWith(nil)
	long := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	msg, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":`+long(maxError)+`}}`), nil)
	if answer, ok := msg.(*jsonrpc.Response); err != nil || !ok || !strings.Contains(answer.Error.Error(), "an error of 1048") {
		t.Errorf("a large error: %.200v, %v", msg, err)
	}
	msg, err = n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":`+long(maxParams)+`}}`), nil)
	if req, ok := msg.(*jsonrpc.Request); err != nil || !ok || req.Params != nil {
		t.Errorf("a large question is for the SDK, which refuses it: %.200v, %v", msg, err)
	}
	if msg, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+long(2000)+`,"method":"ping"}`), nil); err == nil {
		t.Errorf("a long ID: %.200v", msg)
	}
	for _, size := range []int{wire.MaxID, wire.MaxID + 1} {
		id := long(size - len(`""`))
		msg, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`), nil)
		if stray, ok := errors.AsType[*UnknownIDError](err); !ok || stray.ID != id[:wire.MaxID] {
			t.Errorf("an answer with an ID of %d bytes: %.200v, %#.200v", size, msg, err)
		}
	}
	answer := AnswerTo(idOf(t, 1.0), MethodInitialize, json.RawMessage(`{"instructions":`+long(maxOwn)+`}`))
	if answer.Error == nil || !strings.Contains(answer.Error.Error(), "bytes; the most is") {
		t.Errorf("a large result for the SDK: %v", answer.Error)
	}
	if in, err := (Reply{Result: json.RawMessage(`{"x":` + long(maxInput) + `}`)}).InputRequired(); err == nil {
		t.Errorf("a large result that asks: %+v", in)
	}
}
