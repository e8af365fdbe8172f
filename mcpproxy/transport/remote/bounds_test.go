package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// body ends with its context, as the bodies of requests do.
type body struct {
	ctx context.Context
	io.Reader
}

func (b body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

func (b body) Close() error { return nil }

func TestBounds(t *testing.T) {
	link := func() *Link {
		r, err := New(config.Server{Name: "s", URL: "https://mcp.example"}, config.HTTP, message.NewNotifications(func() {}), nil, message.MaxSize)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	asked := outgoingBody{Method: "tools/call", ID: []byte("1")}
	events := append(boundtest.Pick(boundtest.Lines("", ""), "a line that does not end", "empty lines", "carriage returns"),
		boundtest.Repeated("comments", "", ": c\n", ""),
		boundtest.Repeated("comments with CR", "", ":\r", ""),
		boundtest.Repeated("lines of data", "", "data: x\n", "\n"),
		boundtest.Repeated("empty lines of data", "", "data\n", "\n"),
		boundtest.Repeated("events", "", "data: {}\n\n", ""),
		boundtest.Repeated("events with CR", "", "data: {}\r\r", ""),
		boundtest.Repeated("IDs of events", "", "id: 1\n\n", ""),
		boundtest.Repeated("a long ID", "id: ", "x", "\n\n"),
		boundtest.Repeated("marks that end a stream", "", "data: [DONE]\n\n", ""),
		boundtest.Repeated("notifications", "", `data: {"jsonrpc":"2.0","method":"notifications/message"}`+"\n\n", ""),
		boundtest.Repeated("requests", "", `data: {"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n\n", ""),
	)
	events = append(events, boundtest.Named(boundtest.Pick(boundtest.JSON(`data: {"jsonrpc":"2.0","id":1,"result":`, "}\n\n"), "deep lists", "many small objects", "escapes"), " in an event")...)
	result := boundtest.Pick(boundtest.JSON(`{"jsonrpc":"2.0","id":1,"result":`, "}"), "deep lists", "open objects", "many small objects", "a string that does not end")
	pages := boundtest.Pick(boundtest.Text("<html>", "</html>"), "one word", "empty lines", "elements that do not end", "titles that do not end", "elements", "bytes that are not UTF-8")
	pages = append(pages, boundtest.Pick(boundtest.JSON(`{"error":`, "}"), "deep objects", "twins", "escapes")...)
	headers := boundtest.Pick(boundtest.JSON(`{"a":`, "}"), "deep objects", "a wide object", "many small objects", "a long string", "escapes", "a huge number")
	headers = append(headers, boundtest.Nested("as deep as the schema", `{"x":"y","a":`, "}")) // twins are refused before (rawjson.Canonical)
	schema := []byte(strings.Repeat(`{"properties":{"x":{"type":"string","x-mcp-header":"X"},"a":`, 99) + "{}" + strings.Repeat("}}", 99))
	boundtest.Run(t,
		boundtest.Parser{Row: "arguments in headers", Shapes: headers, ParseContext: func(ctx context.Context, text []byte) error {
			h := http.Header{}
			argumentHeaders(ctx, h, schema, text)
			return errors.New(h.Get("Mcp-Param-X"))
		}},
		boundtest.Parser{Row: "events of a server", Shapes: events, Worst: "many small objects in an event", Read: func(ctx context.Context, r io.Reader) error {
			_, err := io.Copy(io.Discard, newEvents(ctx, link(), body{ctx, r}, func() {}, nil))
			return err
		}},
		boundtest.Parser{Row: "answer of a server, HTTP", Shapes: append(result, pages[2], pages[4]), Read: func(ctx context.Context, r io.Reader) error {
			_, err := link().readAnswer(ctx, body{ctx, r}, func() {}, asked, nil)
			return err
		}},
		boundtest.Parser{Row: "error of a server, HTTP", Shapes: pages, Parse: func(text []byte) (err error) {
			e := endpoint{server: config.Server{Name: "s"}, origin: &url.URL{Scheme: "https", Host: "mcp.example"}}
			for _, status := range []int{200, 400, 401, 404, 500} {
				resp := &http.Response{StatusCode: status, Status: "status", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(text)))}
				if status == 200 {
					err = errors.Join(err, e.notMCP(resp))
				} else {
					err = errors.Join(err, e.refused(resp))
				}
			}
			return err
		}},
	)
}
