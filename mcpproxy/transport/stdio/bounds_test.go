package stdio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// pipe ends with its context, as the pipes of a server are closed then.
type pipe struct {
	ctx context.Context
	io.Reader
}

func (p pipe) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	return p.Reader.Read(b)
}

func TestBounds(t *testing.T) {
	hidden := redact.New(config.Server{Env: map[string]string{"TOKEN": "a-secret-of-some-length"}})
	lines := append(boundtest.Pick(boundtest.Lines("", ""), "a line that does not end", "empty lines", "carriage returns", "zero bytes", "colons"),
		boundtest.Repeated("answers", "", `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", ""),
		boundtest.Repeated("requests", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", ""),
		boundtest.Repeated("notifications", "", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`+"\n", ""),
		boundtest.Repeated("messages that are cancelled", "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n", ""),
		boundtest.Repeated("a batch", "[", `{"jsonrpc":"2.0","id":1,"result":{}},`, "{}]\n"),
		boundtest.Repeated("a message in lines", "{\n", `"a":`+"\n1,", "}\n"),
		boundtest.Repeated("messages in lines that do not end", "", "{\n \"a\":1\n", ""),
		boundtest.Repeated("lines of a bracket", "", "{\n", ""),
		boundtest.Repeated("IDs that do not end", "", `{"id":"`, "\n"),
		boundtest.Repeated("damaged IDs", "{", `"id":1,`, "\n"),
		boundtest.Repeated("a long ID", `{"jsonrpc":"2.0","method":"ping","id":"`, "x", "\"}\n"),
	)
	lines = append(lines, boundtest.Pick(boundtest.JSON(`{"jsonrpc":"2.0","id":1,"result":`, "}\n"), "deep lists", "open objects", "many small objects", "escapes")...)
	boundtest.Run(t,
		boundtest.Parser{Row: "messages of a server, stdio", Shapes: lines, Worst: "a message in lines", Read: func(ctx context.Context, r io.Reader) error {
			w := &Transport{
				ctx: ctx, notes: message.NewNotifications(func() {}), limit: message.MaxSize, Process: OverPipes(nil, nil, message.NewNotifications(func() {})).Process,
				in: &wire.Lines{In: bufio.NewReaderSize(pipe{ctx, r}, 64<<10)},
			}
			for {
				if _, err := w.Read(ctx); err != nil {
					return err
				}
			}
		}},
		boundtest.Parser{Row: "stderr of a server", Shapes: boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "empty lines", "colors", "escape sequences that do not end", "overrides", "bytes that are not UTF-8"), Read: func(ctx context.Context, r io.Reader) error {
			tail := newOutputTail("s", hidden, slog.New(slog.DiscardHandler))
			tail.readFrom(pipe{ctx, r})
			_, err := Reason(tail.appendTo(errors.New("it ended")))
			return err
		}},
	)
}
