package message

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

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
			if fits && (err != nil || other != nil || !bytes.Equal(all.Text, text) || !bytes.Equal(parts.Text, text)) {
				t.Errorf("%d bytes %s: %d, %v, in parts %d, %v", size, name, len(all.Text), err, len(parts.Text), other)
			}
			if cap(all.Text) > limit || cap(parts.Text) > limit {
				t.Errorf("%d bytes %s take %d, in parts %d", size, name, cap(all.Text), cap(parts.Text))
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

// TestLargeMessagesNeedRoom beside those that are arriving, and what is small needs none.
func TestLargeMessagesNeedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var others memory.Buffer
		if err := others.Grow(t.Context(), memory.Arriving, func() {}); err != nil {
			t.Fatal(err)
		}
		defer others.Release()
		b := Buffer{Limit: MaxSize}
		defer b.Release()
		if err := b.Add(t.Context(), make([]byte, 1000)); err != nil {
			t.Errorf("a small message: %v", err)
		}
		err := b.Add(t.Context(), make([]byte, 300<<10))
		if long, ok := errors.AsType[*TooLongError](err); !ok || !errors.Is(long, memory.ErrFull) ||
			long.Error() != "sent a large message, and there is no room for it beside the large messages of other calls" {
			t.Errorf("a large message: %v", err)
		}
		ended := errors.New("the run is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ended)
		if err := b.Add(ctx, make([]byte, 300<<10)); !errors.Is(err, ended) {
			t.Errorf("a large message of a run that is over: %v", err)
		}
		if len(b.Text) != 1000 {
			t.Errorf("%d bytes were kept", len(b.Text))
		}
	})
}

func TestLargeMessagesThatDoNotEndEndTheirStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []error
		b := Buffer{Limit: MaxSize, End: func(err error) { ended = append(ended, err) }}
		defer b.Release()
		if err := b.Add(t.Context(), make([]byte, 300<<10)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ended) != 1 || !IsLost(ended[0]) || !errors.Is(ended[0], memory.ErrLate) ||
			ended[0].Error() != "sent a large message, and it was not complete within 2 minutes" {
			t.Errorf("ended with %v", ended)
		}
	})
}

func TestErrorsOfTheStreamAreReturned(t *testing.T) {
	b := Buffer{Limit: 1 << 20}
	if err := b.ReadAll(t.Context(), iotest.TimeoutReader(strings.NewReader(strings.Repeat("x", 20<<10)))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	if err := (&TooLongError{Limit: 2 << 20}).Error(); err != "sent a message longer than 2 MiB" {
		t.Errorf("too long: %s", err)
	}
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
