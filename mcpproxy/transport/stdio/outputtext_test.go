package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// tailOf returns what is kept of the lines that a server wrote to stderr.
func tailOf(lines string) *outputTail {
	d := newOutputTail("s", redact.New(config.Server{}), slog.New(slog.DiscardHandler))
	d.readFrom(strings.NewReader(lines))
	return d
}

// TestErrorsSayAsMuchOfTheOutputAsTheirReadersMaySee: all of it, the line with the reason, or
// nothing but where it is.
func TestErrorsSayAsMuchOfTheOutputAsTheirReadersMaySee(t *testing.T) {
	const shown = "toolcell servers check s"
	for _, tt := range []struct{ name, output, full, without, short, reason string }{
		{"nothing", "", "asking: EOF", "asking: EOF", "asking: EOF", "asking: EOF"},
		{
			"one line", "no key\n", "asking: EOF; its stderr ended: no key", "asking: EOF; its stderr is shown by: " + shown,
			"asking: EOF; its stderr ended: no key", "asking: EOF; its stderr ended: no key",
		},
		{
			"several lines", "Error: no key\nbye\n", "asking: EOF; its stderr ended: Error: no key\nbye", "asking: EOF; its stderr is shown by: " + shown,
			"asking: EOF; its stderr ended: Error: no key (all of it is shown by: " + shown + ")", "asking: EOF; its stderr says: Error: no key",
		},
	} {
		d := tailOf(tt.output)
		_ = d.appendTo(io.EOF) // it can be asked for again
		err := fmt.Errorf("asking: %w", d.appendTo(io.EOF))
		lines, reason := Reason(err)
		for _, text := range []struct {
			err  error
			want string
		}{{err, tt.full}, {WithoutOutput(err), tt.without}, {ShortOutput(err), tt.short}, {reason, tt.reason}} {
			if text.err.Error() != text.want || !errors.Is(text.err, io.EOF) {
				t.Errorf("%s: %q\nwant %q", tt.name, text.err, text.want)
			}
		}
		if got := HasOutput(err); got != (tt.output != "") {
			t.Errorf("%s: quotes output: %v", tt.name, got)
		}
		if want := strings.Split(strings.TrimSpace(tt.output), "\n"); len(want) == 1 && lines != nil || len(want) > 1 && !slices.Equal(lines, want) {
			t.Errorf("%s: lines to be shown: %q", tt.name, lines)
		}
	}
}

// TestOutputIsQuotedInWholeLines, without empty ones, and with what indents them.
func TestOutputIsQuotedInWholeLines(t *testing.T) {
	if got, want := tailOf("one\n\n  \n\ttwo\n").last(), "one\n    two"; got != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
	long := "begin " + strings.Repeat("x", maxQuotedTail/3) + " end\n"
	got := tailOf(strings.Repeat(long, 5)).last()
	if want := strings.TrimSpace(strings.Repeat(long, 2)); got != want {
		t.Errorf("the output is %q, want two lines", got)
	}
}

// TestOutputIsLogged without secrets, for those who look for the cause.
func TestOutputIsLogged(t *testing.T) {
	var log bytes.Buffer
	hidden := redact.New(config.Server{Env: map[string]string{"KEY": "private"}})
	d := newOutputTail("s", hidden, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	d.readFrom(strings.NewReader("my private words\n"))
	if got := log.String(); !strings.Contains(got, `server=s stream=stderr line="my [KEY] words"`) {
		t.Errorf("the log: %q", got)
	}
}

// TestLinesOnStdoutThatAreNoMessagesAreKept for errors, and answers that cannot be read are
// not: they may be large, and the error of their call quotes them.
func TestLinesOnStdoutThatAreNoMessagesAreKept(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, tt := range []struct{ name, output, want string }{
		{"a log line in JSON", `{"level":"info"}` + "\n" + answer, `{"level":"info"}`},
		{"a request behind text", `got {"jsonrpc":"2.0","id":2,"method":"x"}` + "\n" + answer, "got\n" + `{"jsonrpc":"2.0","id":2,"method":"x"}`},
		{"lines after a bracket", "{\nnot a message\n" + answer, "{ not a message"},
		{"an answer", answer, ""},
		{"an answer that cannot be read", `{"jsonrpc":"2.0","id":1,"result":NaN}`, ""},
	} {
		w := wireOver(t, tt.output, 4096)
		w.calls.Add(t.Context(), request(1, "ping"))
		if _, err := w.Read(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := w.output.last(); got != tt.want {
			t.Errorf("%s: kept %q, want %q", tt.name, got, tt.want)
		}
	}
}
