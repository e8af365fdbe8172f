package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

func wireOver(t testing.TB, input string, limit int) *Transport {
	return &Transport{ctx: t.Context(), end: func() {}, notes: message.NewNotifications(func() {}), in: &wire.Lines{In: bufio.NewReaderSize(strings.NewReader(input), 16)}, limit: limit, Process: OverPipes(nil, nil, message.NewNotifications(func() {})).Process}
}

func TestReadPassesOverWhatIsNoMessage(t *testing.T) {
	w := wireOver(t, strings.Join([]string{
		"Server ready", "", "  ", strings.Repeat("log ", 1000), `{"level":"info"}`, "{broken", "[]", "[1,2]", `"text"`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`,
		` {"jsonrpc":"2.0","id":1,"result":{"a":1}} ` + "\r",
		`[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}}]`,
		`{"id":4,"result":{}}`,                    // no version: its call must not wait for ever
		`log{"jsonrpc":"2.0","id":1,"result":{}}`, // and the next line is not behind text
		`{"jsonrpc":"2.0","id":5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":6,"result":{}}`, // and no newline
	}, "\n"), 4096)
	fourth, _ := jsonrpc.MakeID(4.0)
	w.calls.Add(t.Context(), &jsonrpc.Request{ID: fourth, Method: "ping"})
	sixth, _ := jsonrpc.MakeID(6.0)
	w.calls.Add(t.Context(), &jsonrpc.Request{ID: sixth, Method: "ping"})
	var got []any
	for {
		msg, err := w.Read(t.Context())
		if err != nil {
			break
		}
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			got = append(got, msg.ID.Raw())
			if failed := msg.Error != nil; failed != (msg.ID.Raw() == int64(4)) {
				t.Errorf("answer %v: error %v", msg.ID.Raw(), msg.Error)
			}
		case *jsonrpc.Request:
			got = append(got, msg.Method)
		default:
			t.Errorf("the session sees %v", msg)
		}
	}
	want := []any{int64(1), int64(2), int64(3), int64(4), int64(1), "ping", int64(6)}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("message %d is %v, want %v", i, got[i], want[i])
		}
	}
	if tail := w.output.last(); !strings.Contains(tail, "Server ready") {
		t.Errorf("the tail does not have the stray lines: %q", tail)
	}
}

func TestReadRefusesEndlessMessage(t *testing.T) {
	w := wireOver(t, "{"+strings.Repeat(" ", 5000), 4096)
	if _, err := w.Read(t.Context()); !errors.As(err, new(*message.TooLongError)) {
		t.Errorf("err = %v", err)
	}
	w = wireOver(t, strings.Repeat("x", 1<<20)+"\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`, 4096)
	first, _ := jsonrpc.MakeID(1.0)
	w.calls.Add(t.Context(), &jsonrpc.Request{ID: first, Method: "ping"})
	if _, err := w.Read(t.Context()); err != nil {
		t.Errorf("an endless log line broke the connection: %v", err)
	}
}

func TestDiagnosisIsBoundedAndClean(t *testing.T) {
	d := newOutputTail("x", redact.New(config.Server{Env: map[string]string{"TOKEN": "sk-12345678", "MODE": "dev"}}), slog.New(slog.DiscardHandler))
	d.readFrom(strings.NewReader(strings.Repeat("noise\n", 10_000) + "\x1b[31mbad token sk-12345678\xff in dev\n" + strings.Repeat("y", 1500)))
	text := d.last()
	if len(d.tail) > maxTail || len(text) > maxQuotedTail {
		t.Errorf("tail of %d bytes, text of %d", len(d.tail), len(text))
	}
	if strings.Contains(text, "sk-1234") || !strings.Contains(text, "[TOKEN]") || !strings.Contains(text, "in dev") || strings.Contains(text, "\x1b") {
		t.Errorf("text = %q", text)
	}
}

// TestOutputIsLeftOutThoughItsErrorWasRedacted: a secret may be a word of ours.
func TestOutputIsLeftOutThoughItsErrorWasRedacted(t *testing.T) {
	hidden := redact.New(config.Server{Env: map[string]string{"KEY": "stderr", "OTHER_KEY": "private"}})
	d := newOutputTail("my server", redact.New(config.Server{}), slog.New(slog.DiscardHandler))
	if err := d.appendTo(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("with no output: %v", err)
	}
	d.add("stderr", []byte("private words\n"))
	err := hidden.Error(fmt.Errorf("asking: %w", d.appendTo(io.EOF)))
	short := WithoutOutput(err)
	if !strings.Contains(err.Error(), "its [KEY] ended") || strings.Contains(short.Error(), "words") || !errors.Is(short, io.EOF) {
		t.Errorf("%v became %v", err, short)
	}
	if !strings.HasSuffix(short.Error(), "toolcell servers check 'my server'") {
		t.Errorf("%v does not say where it is shown", short)
	}
}

// TestLinesStayWhole, also where the server reads slowly or the writer has left.
func TestLinesStayWhole(t *testing.T) {
	r, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer stdin.Close()
	w := newTransport(&Process{stdin: stdin}, message.NewNotifications(func() {}))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	long := strings.Repeat("x", 1<<20)
	if err := w.send(impatient, []byte(long)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the server reads nothing, and it says %v", err)
	}
	if err := w.send(impatient, []byte("never")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a line is on its way, and it says %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := w.send(t.Context(), []byte(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	in, seen := bufio.NewReader(r), map[string]bool{}
	for range 21 {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		seen[strings.TrimSuffix(line, "\n")] = true
	}
	all.Wait()
	if len(seen) != 21 || !seen[long] || seen["never"] {
		t.Errorf("%d lines came", len(seen))
	}
}
