package stdio

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

func TestBounds(t *testing.T) {
	call := func(id, rest string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":` + rest }
	shapes := boundtest.Pick(boundtest.JSON(call("1", `"tools/call","params":{"name":"run_python","arguments":`), "}}"),
		"deep lists", "open objects", "a wide object", "many small objects", "a long string", "escapes", "a huge number")
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"jsonrpc":"2.0","method":"tools/list","id":`, "}"), "a long string", "escapes", "a huge number", "a huge exponent", "deep lists"), " as an ID")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(call("1", `"ping","params":{"_meta":{"progressToken":`), "}}}"), "a long string", "a huge number"), " as a token")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(call("1", `"initialize","params":{"capabilities":`), "}}"), "a wide object", "deep objects"), " as capabilities")...)
	shapes = append(shapes, boundtest.Pick(boundtest.Text("", ""), "zero bytes", "bytes that are not UTF-8", "quotes", "open brackets")...)
	shapes = append(shapes,
		boundtest.Counted("requests in an array", "[", call("%d", `"ping"}`), ",", "]"),
		boundtest.Repeated("notifications in an array", "[{}", `,{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "]"),
		boundtest.Repeated("what are no messages in an array", "[1", ",1", "]"),
		boundtest.Repeated("an array that does not end", "[", `{"id":1,"method":"ping"},`, ""),
		boundtest.Repeated("twins of an ID", `{"jsonrpc":"2.0","id":1`, `,"id":1`, `,"method":"ping"}`),
		boundtest.Repeated("lines", "", call("1", `"ping"}`)+"\n", ""),
		boundtest.Repeated("a method that does not end", `{"jsonrpc":"2.0","id":1,"method":"`, "m", ""),
	)
	boundtest.Run(t, boundtest.Parser{Row: "message of the client", Shapes: shapes, Parse: func(text []byte) error {
		c := New(strings.NewReader(""), io.Discard, slog.New(slog.DiscardHandler))
		defer c.Close()
		for lines := (&wire.Lines{In: bufio.NewReaderSize(bytes.NewReader(text), 64<<10)}); ; {
			line, tooLong, err := readLine(lines)
			c.messages(line, tooLong, func(msg jsonrpc.Message) bool {
				if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
					_ = c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")})
				}
				return true
			})
			if err != nil {
				return err
			}
		}
	}})
}
