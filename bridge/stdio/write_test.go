package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A conn that has read one request, and what is written to its client. The input stays
// open until the test ends.
func connWithRequest(t *testing.T, line string) (c *Conn, req *jsonrpc.Request, written *bytes.Buffer) {
	t.Helper()
	in, send := io.Pipe()
	written = new(bytes.Buffer)
	c = New(in, written, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { c.Close(); send.Close() })
	go func() { _, _ = io.WriteString(send, line+"\n") }()
	msg, err := c.Read(t.Context())
	req, ok := msg.(*jsonrpc.Request)
	if err != nil || !ok {
		t.Fatalf("%v, %v", msg, err)
	}
	return c, req, written
}

// TestRequestIsAnsweredOnce: a second answer would be one to nothing.
func TestRequestIsAnsweredOnce(t *testing.T) {
	c, req, written := connWithRequest(t, ping)
	for range 2 {
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}); err != nil {
			t.Error(err)
		}
	}
	if got, want := written.String(), `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAnswerToNoRequestHasNoID: of what could not be read, the ID is not known.
func TestAnswerToNoRequestHasNoID(t *testing.T) {
	c, _, written := connWithRequest(t, ping)
	if err := c.Write(t.Context(), &jsonrpc.Response{Error: &jsonrpc.Error{Code: -32600, Message: "m"}}); err != nil {
		t.Error(err)
	}
	if got := written.String(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`) {
		t.Error(got)
	}
}

// TestUnwritableMessageIsAnError, and no line of the stream.
func TestUnwritableMessageIsAnError(t *testing.T) {
	c, req, written := connWithRequest(t, ping)
	for name, msg := range map[string]jsonrpc.Message{
		"a request":   &jsonrpc.Request{ID: req.ID, Method: "m", Params: []byte("{")},
		"an answer":   &jsonrpc.Response{ID: req.ID, Result: []byte("{")},
		"no request":  (*jsonrpc.Request)(nil),
		"no response": (*jsonrpc.Response)(nil),
	} {
		if err := c.Write(t.Context(), msg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if written.Len() > 0 {
		t.Errorf("written: %q", written)
	}
}

// TestSubscriptionHasTheIDOfTheClient in its notifications and in its answer. An ID that
// is none of ours stays as it is.
func TestSubscriptionHasTheIDOfTheClient(t *testing.T) {
	c, req, written := connWithRequest(t, `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen"}`)
	meta := func(id any) []byte { return fmt.Appendf(nil, `{"_meta":{%q:%v}}`, subscriptionKey, id) }
	for _, msg := range []jsonrpc.Message{
		&jsonrpc.Request{Method: "notifications/a", Params: meta(req.ID.Raw())},
		&jsonrpc.Request{Method: "notifications/b", Params: meta(`"theirs"`)},
		&jsonrpc.Response{ID: req.ID, Result: meta(req.ID.Raw())},
		&jsonrpc.Request{Method: "notifications/late", Params: meta(req.ID.Raw())},
	} {
		if err := c.Write(t.Context(), msg); err != nil {
			t.Error(err)
		}
	}
	want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/a","params":%s}
{"jsonrpc":"2.0","method":"notifications/b","params":%s}
{"jsonrpc":"2.0","id":"s","result":%s}
`, meta(`"s"`), meta(`"theirs"`), meta(`"s"`))
	if got := written.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestErrorsHaveACode, and none of Go's words.
func TestErrorsHaveACode(t *testing.T) {
	const early = "method is invalid during session initialization"
	gone := &jsonrpc.Error{Code: -32002, Message: "gone", Data: []byte(`{"a":1}`)}
	for want, err := range map[string]error{
		`-32002,"message":"gone","data":{"a":1}}`:                        fmt.Errorf("%w", gone),
		`-32603,"message":"it failed"}`:                                  errors.New("it failed"),
		`-32600,"message":"` + early + `"}`:                              errors.New(early),
		`-32602,"message":"the params of ping are not as MCP has them"}`: errors.New(`unmarshaling {"secret":1} into mcp.Params`),
		`-32602,"message":"ping: there are no params"}`:                  errors.New(`missing required "params"`),
	} {
		c, req, written := connWithRequest(t, ping)
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Error: err}); err != nil {
			t.Error(err)
		}
		if got := written.String(); !strings.Contains(got, `"error":{"code":`+want+"}") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
