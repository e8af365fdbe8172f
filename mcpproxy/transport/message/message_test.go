package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestBatchesAreSplit(t *testing.T) {
	for line, want := range map[string]string{
		`[{"a":1}, {"b":[2]}]`:    `{"a":1}|{"b":[2]}`,
		"\ufeff[{\"a\":1},{}]\n":  `{"a":1}|{}`,
		" \ufeff{\"a\":1}\r\n":    `{"a":1}`,
		`{"a":[1,2]}`:             `{"a":[1,2]}`,
		`[{"a":1},`:               `[{"a":1},`, // it is cut off
		"Listening on port 1 [x]": "Listening on port 1 [x]",
	} {
		var got []string
		for _, one := range Batch(t.Context(), []byte(line)) {
			got = append(got, string(one))
		}
		if all := strings.Join(got, "|"); all != want {
			t.Errorf("%q is %q", line, all)
		}
	}
}

func TestLostConnectionsAreToldFromErrors(t *testing.T) {
	for _, lost := range []error{mcp.ErrConnectionClosed, io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE, &TooLongError{Limit: MaxSize}} {
		if !IsLost(fmt.Errorf("calling: %w", lost)) {
			t.Errorf("%v is none", lost)
		}
	}
	for _, other := range []error{nil, context.Canceled, &jsonrpc.Error{Message: "EOF"}, Unreadable("odd")} {
		if IsLost(other) {
			t.Errorf("%v is one", other)
		}
	}
}

// TestOddMessagesAreToldApart: what is no message may be a line of a log, and an odd answer
// must end its request.
func TestOddMessagesAreToldApart(t *testing.T) {
	const unreadable, stray, unknown = "*message.UnreadableError", "*message.StrayError", "*message.UnknownIDError"
	none := fmt.Sprintf("%T", errNoMessage)
	for raw, want := range map[string]struct{ kind, text string }{
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                       {none, "this is no message of MCP"},
		`{"jsonrpc":"2.0","id":1,"method":7}`:                            {none, "this is no message of MCP"},
		`{"id":1,"method":"ping"}`:                                       {none, "this is no message of MCP"},
		`{"jsonrpc":"2.0"}`:                                              {none, "this is no message of MCP"},
		`{"jsonrpc":"2.0","id":"x"}`:                                     {none, "this is no message of MCP"},
		`{"id":1}`:                                                       {none, "this is no message of MCP"},
		`{"id":"x","result":{}}`:                                         {none, "this is no message of MCP"},
		`{"id":"x","error":{"code":-1,"message":"no"}}`:                  {none, "this is no message of MCP"},
		`{"jsonrpc":"2.0","id":1}`:                                       {unreadable, "the server's answer cannot be read: it has neither a result nor an error"},
		`{"id":1,"result":{}}`:                                           {unreadable, `the server's answer cannot be read: it has no "jsonrpc": "2.0"`},
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`: {stray, "no"},
		`{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}`:  {stray, "no"},
		`{"jsonrpc":"2.0","result":{}}`:                                  {stray, "the server's answer cannot be read: it has no id"},
		`{"jsonrpc":"2.0","id":1.5,"result":{}}`:                         {stray, "the server's answer cannot be read: it has the id 1.5, and no request does"},
		`{"jsonrpc":"2.0","id":"x","result":{}}`:                         {unknown, `the server's answer cannot be read: it has the id "x", and no request does`},
	} {
		msg, err := NewNotifications(func() {}).Decode(t.Context(), []byte(raw), nil)
		if err == nil || fmt.Sprintf("%T", err) != want.kind || err.Error() != want.text || msg != nil {
			t.Errorf("%s: %v, %T %v", raw, msg, err, err)
		}
	}
	if answer := answerOf(t, `{"jsonrpc":"2.0","id":7,"result":[ ]}`); answer == nil || string(answer.Result) != "{}" {
		t.Errorf("an empty list is %v", answer)
	}
}

// TestErrorsOfAServerReachTheSDKAsTheyAre, and what else is wrong is kept for the caller.
func TestErrorsOfAServerReachTheSDKAsTheyAre(t *testing.T) {
	c := &Call{}
	said := &jsonrpc.Error{Code: -5, Message: "no", Data: json.RawMessage(`{"a":1}`)}
	answer := failedAnswer(c, idOf(t, 1.0), fmt.Errorf("calling: %w", said))
	if got, ok := errors.AsType[*jsonrpc.Error](answer.Error); !ok || got != said || c.Failure() != nil {
		t.Errorf("the SDK gets %v, the caller %v", answer.Error, c.Failure())
	}
	odd := Unreadable("odd")
	if answer := failedAnswer(c, idOf(t, 1.0), odd); answer.Error == nil || answer.Error.Error() != odd.Error() || !errors.Is(c.Failure(), odd) {
		t.Errorf("the SDK gets %v, the caller %v", answer.Error, c.Failure())
	}
}

// TestRequestsOfAServerKeepTheirIDs towards it, whatever they are; the SDK has IDs of ours.
func TestRequestsOfAServerKeepTheirIDs(t *testing.T) {
	n := NewNotifications(func() {})
	receive := func(text string) *jsonrpc.Request {
		t.Helper()
		msg, err := n.Decode(t.Context(), []byte(text), nil)
		req, ok := msg.(*jsonrpc.Request)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", text, msg, err)
		}
		return req
	}
	first := receive(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	second := receive(`{"jsonrpc":"2.0","id":1764115200123456789,"method":"ping"}`)
	if first.ID != idOf(t, 1.0) || second.ID != idOf(t, 2.0) {
		t.Errorf("they are %v and %v", first.ID, second.ID)
	}
	cancelled := receive(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1764115200123456789,"reason":"r"}}`)
	if cancelled.Method != methodCancelled || string(cancelled.Params) != `{"requestId":2,"reason":"r"}` {
		t.Errorf("cancelled: %s %s", cancelled.Method, cancelled.Params)
	}
	for _, want := range []string{`{"jsonrpc":"2.0","id":"a","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} { // the second time it is over
		got, err := n.Encode(&jsonrpc.Response{ID: first.ID, Result: json.RawMessage(`{}`)})
		if err != nil || string(got) != want {
			t.Errorf("encoded: %s, %v", got, err)
		}
	}
	written := `{"jsonrpc":"2.0","id":2,"result":{}}`
	for _, want := range []string{`{"jsonrpc":"2.0","id":1764115200123456789,"result":{}}`, written} {
		if got := n.Restore([]byte(written), json.RawMessage("2")); string(got) != want {
			t.Errorf("restored: %s", got)
		}
	}
	if got, err := n.Encode(&jsonrpc.Request{ID: second.ID, Method: "ping"}); err != nil || string(got) != `{"jsonrpc":"2.0","id":2,"method":"ping"}` {
		t.Errorf("a request: %s, %v", got, err)
	}
}

// TestResultsOfARunThatIsOverAreNotRead: half of one may look as if it were no error.
func TestResultsOfARunThatIsOverAreNotRead(t *testing.T) {
	ended := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	for _, text := range []string{`{}`, `{"a":[` + strings.Repeat(`"x",`, 50_000) + `"x"],"isError":true}`} {
		if r, err := ReplyOf(ctx, json.RawMessage(text)); !errors.Is(err, ended) || r.Result != nil {
			t.Errorf("%.20s: %.20s, %v", text, r.Result, err)
		}
	}
}
