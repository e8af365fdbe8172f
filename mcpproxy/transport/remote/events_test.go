package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// linkOver returns a link of the transport, which sends nothing.
func linkOver(t *testing.T, kind config.Transport) *Link {
	t.Helper()
	r := linkTo(t, "https://mcp.example", nil)
	r.transport = kind
	return r
}

// streamOf returns the events in a stream.
func streamOf(t *testing.T, r *Link, stream string) *events {
	t.Helper()
	return newEvents(t.Context(), r, io.NopCloser(strings.NewReader(stream)), func() {}, nil)
}

// endedBy returns a context that has ended.
func endedBy(t *testing.T, why error) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	return ctx
}

// requestOf returns a request for a server.
func requestOf(t *testing.T, id float64, method string) *jsonrpc.Request {
	t.Helper()
	made, err := jsonrpc.MakeID(id)
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: made, Method: method}
}

const (
	answer1 = `{"jsonrpc":"2.0","id":1,"result":{"n":9007199254740993}}`
	error1  = `{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"no"}}`
	kept1   = "data: " + `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the result is kept"}}` + "\n\n"
	noID    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`
)

// TestStreamsThatAnswerACall give it the result as the server wrote it, or say why there is none.
func TestStreamsThatAnswerACall(t *testing.T) {
	const unfinished = "the server ended its answer before it was whole"
	for name, tt := range map[string]struct {
		stream    string
		end       error // of the body, in place of io.EOF
		out       string
		result    string
		failure   string
		continues bool // as the rest of an answer that was cut off
	}{
		"answer":                   {stream: "data: " + answer1 + "\n\n", out: kept1, result: `{"n":9007199254740993}`},
		"error":                    {stream: "data: " + error1 + "\n\n", out: "data: " + error1 + "\n\n"},
		"error without an ID":      {stream: "data: " + noID + "\n\n", out: "data: " + strings.Replace(noID, "null", "1", 1) + "\n\n"},
		"answer to another":        {stream: "data: " + strings.Replace(answer1, "1", "2", 1) + "\n\n", failure: "the server answered another request (its id is 2)"},
		"no message":               {stream: "data: oops\n\ndata: " + answer1 + "\n\n", failure: "the server's answer is not JSON-RPC: it is not JSON from byte 0 on: \"oops\": oops"},
		"no message in the rest":   {stream: "data: oops\n\ndata: " + answer1 + "\n\n", failure: "the server sent what is not JSON-RPC: it is not JSON from byte 0 on: \"oops\"", continues: true},
		"too long":                 {stream: "data: " + strings.Repeat("x", 1<<20) + "\n\n", failure: "the server sent a message longer than 1 MiB"},
		"nothing":                  {failure: unfinished},
		"half an event":            {stream: "data: " + answer1 + "\n", failure: unfinished},
		"broken off":               {end: io.ErrUnexpectedEOF, failure: unfinished},
		"broken off by an error":   {end: errors.New("reset"), failure: "its answer broke off: reset"},
		"can be asked again":       {stream: "id: 7\n\n", out: "id: 7\n\n"},
		"byte order mark":          {stream: "\ufeffdata: " + answer1 + "\n\n", out: kept1, result: `{"n":9007199254740993}`},
		"another event":            {stream: "event: other\ndata: " + answer1 + "\n\n", failure: unfinished},
		"after an event of a name": {stream: "event: other\n\ndata: " + answer1 + "\n\n", out: kept1, result: `{"n":9007199254740993}`},
	} {
		end := tt.end
		if end == nil {
			end = io.EOF
		}
		c := &message.Call{}
		c.MarkSent([]byte("1"))
		e := newEvents(t.Context(), linkOver(t, config.HTTP), io.NopCloser(io.MultiReader(strings.NewReader(tt.stream), iotest.ErrReader(end))), func() {}, c)
		if !tt.continues {
			e.asked = outgoingBody{Method: "tools/call", ID: []byte("1")}
		}
		out, _ := io.ReadAll(e)
		if string(out) != tt.out {
			t.Errorf("%s: the SDK gets %q, want %q", name, out, tt.out)
		}
		if r, ok := c.Result(); ok != (tt.result != "") || string(r.Result) != tt.result {
			t.Errorf("%s: the result is %q, %v", name, r.Result, ok)
		}
		failure := ""
		if err := c.Failure(); err != nil {
			failure = err.Error()
		}
		if failure != tt.failure {
			t.Errorf("%s: fails with %q, want %q", name, failure, tt.failure)
		}
	}
}

// TestStreamsThatAnswerTheSDK get results as it can read them.
func TestStreamsThatAnswerTheSDK(t *testing.T) {
	e := streamOf(t, linkOver(t, config.HTTP), `data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"v","serverInfo":[]}}`+"\n\n")
	e.asked = outgoingBody{Method: message.MethodInitialize, ID: []byte("1")}
	out, _ := io.ReadAll(e)
	if want := `data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"v","serverInfo":{}}}` + "\n\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestStreamsOfSSE begin with the address to send to. All requests, here 1 and 2, share one.
func TestStreamsOfSSE(t *testing.T) {
	const (
		closed     = "closed its stream of events"
		begin      = "event: endpoint\ndata:  /messages \n\n"
		began      = "event: endpoint\ndata: /messages\n\n"
		noEndpoint = `the server at https://mcp.example began its stream with the event "message" instead of the address to send to (the endpoint event)`
		error2     = `{"jsonrpc":"2.0","id":2,"error":{"code":-32700,"message":"Parse error"}}`
	)
	for name, tt := range map[string]struct{ stream, out, result, down string }{
		"answer":                {begin + "data: " + answer1 + "\n\n", began + kept1, `{"n":9007199254740993}`, closed},
		"IDs of events":         {begin + "id: 1\ndata: " + error1 + "\n\n", began + "id: 1\ndata: " + error1 + "\n\n", "", closed},
		"no endpoint":           {"event: message\ndata: " + answer1 + "\n\n", "", "", noEndpoint},
		"endpoint twice":        {begin + begin, began, "", closed},
		"too long":              {begin + "data: " + strings.Repeat("x", 1<<20) + "\n\n", began, "", "sent a message longer than 1 MiB"},
		"nothing":               {"", "", "", closed},
		"no message":            {begin + "data: oops\n\ndata: " + answer1 + "\n\n", began + kept1, `{"n":9007199254740993}`, closed},
		"no result":             {begin + `data: {"jsonrpc":"2.0","id":1}` + "\n\n", began + `data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server's answer cannot be read: it has neither a result nor an error"}}` + "\n\n", "", closed},
		"one without an ID":     {begin + "data: " + noID + "\n\n", began, "", closed},
		"the last has no ID":    {begin + "data: " + answer1 + "\n\ndata: " + noID + "\n\n", began + kept1 + "data: " + error2 + "\n\n", `{"n":9007199254740993}`, closed},
		"error, and one has no": {begin + "data: " + error1 + "\n\ndata: " + noID + "\n\n", began + "data: " + error1 + "\n\ndata: " + error2 + "\n\n", "", closed},
	} {
		r, c := linkOver(t, config.SSE), &message.Call{}
		ctx := c.Begin(t.Context())
		r.calls.Add(ctx, requestOf(t, 1, "tools/call"))
		r.calls.Add(t.Context(), requestOf(t, 2, "tools/list"))
		out, _ := io.ReadAll(streamOf(t, r, tt.stream))
		if string(out) != tt.out {
			t.Errorf("%s: the SDK gets %q, want %q", name, out, tt.out)
		}
		if r, ok := c.Result(); ok != (tt.result != "") || string(r.Result) != tt.result {
			t.Errorf("%s: the result is %q, %v", name, r.Result, ok)
		}
		if why := context.Cause(r.down); why == nil || why.Error() != tt.down {
			t.Errorf("%s: the link is down: %v, want %s", name, why, tt.down)
		}
		c.GiveUp()
	}
}

// TestStreamOfSSEThatStopsInALargeMessage ends the link, in words.
func TestStreamOfSSEThatStopsInALargeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		go func() {
			defer contain.Recover("writing", nil)
			_, _ = io.WriteString(in, "data: "+strings.Repeat("x", 600<<10))
		}()
		r := linkOver(t, config.SSE)
		_, _ = io.ReadAll(newEvents(t.Context(), r, out, func() { out.Close() }, nil))
		if why := context.Cause(r.down); why == nil || !strings.Contains(why.Error(), "sent a large message, and it was not complete") {
			t.Errorf("the link is down: %v", why)
		}
	})
}

// TestEventsAreBounded with all their lines, and each for itself.
func TestEventsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		fits   bool
	}{
		"lines that are kept":    {strings.Repeat("id: "+strings.Repeat("x", 100)+"\n", 11) + "\n", false},
		"comments in one":        {strings.Repeat(": "+strings.Repeat("x", 100)+"\n", 11) + "\n", false},
		"comments before others": {strings.Repeat(": "+strings.Repeat("x", 100)+"\n\n", 11) + "id: 1\n\n", true},
	} {
		out, err := eventsOf(t, 1000, tt.stream)
		var long *message.TooLongError
		if errors.As(err, &long) == tt.fits || tt.fits != (out == "id: 1\n\n") {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestLargeEventsLeaveNoRoomTaken, whether they are passed on, dropped or cut off.
func TestLargeEventsLeaveNoRoomTaken(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for name, stream := range map[string]string{
		"dropped":                 "data: " + long + "\n\n",
		"passed on":               "event: endpoint\ndata: " + long + "\n\n",
		"lines of data":           "data: " + long + "\ndata: " + long + "\n\n",
		"comment":                 ": " + long + "\n\n",
		"ID":                      "id: " + long + "\n\n",
		"end within a line":       "data: " + long,
		"end after a line":        "data: " + long + "\n",
		"end within another line": "data: " + long + "\ndata: " + long,
		"too long":                "data: " + long + "\ndata: " + strings.Repeat(long, 4) + "\n\n",
	} {
		for _, kind := range []config.Transport{config.HTTP, config.SSE} {
			_, _ = io.ReadAll(streamOf(t, linkOver(t, kind), stream))
			var all memory.Buffer
			if err := all.Grow(endedBy(t, memory.ErrFull), memory.Arriving, func() {}); err != nil {
				t.Fatalf("%s, %s: some room was not given back: %v", name, kind, err)
			}
			all.Release()
		}
	}
}

// TestLargeEventsWithoutRoomAreRefused as a whole: no line of one is left out.
func TestLargeEventsWithoutRoomAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all memory.Buffer
		if err := all.Grow(t.Context(), memory.Arriving, func() {}); err != nil {
			t.Fatal(err)
		}
		defer all.Release()
		line := "data: " + strings.Repeat(" ", 100<<10)
		out, err := eventsOf(t, 1<<20, line+error1+"\n"+line+"\n"+line+"\n\n")
		if out != "" || !errors.Is(err, memory.ErrFull) {
			t.Errorf("got %q, %v", out, err)
		}
	})
}

// TestStreamsDoNotKeepTheRoomOfAGiant: they may last as long as the session.
func TestStreamsDoNotKeepTheRoomOfAGiant(t *testing.T) {
	r := linkOver(t, config.SSE)
	r.limit = 3 << 20
	address := "/" + strings.Repeat("x", 2<<20)
	e := streamOf(t, r, "event: endpoint\ndata: "+address+"\n\n")
	out, _ := io.ReadAll(e)
	if want := "event: endpoint\ndata: " + address + "\n\n"; string(out) != want {
		t.Errorf("got %d bytes, want %d", len(out), len(want))
	}
	if e.out.Cap() > 1<<20 {
		t.Errorf("%d bytes are kept", e.out.Cap())
	}
}

func TestStreamsThatAreClosedEndTheirRequest(t *testing.T) {
	ended := false
	e := newEvents(t.Context(), linkOver(t, config.HTTP), http.NoBody, func() { ended = true }, nil)
	if err := e.Close(); err != nil || !ended {
		t.Errorf("ended: %v, %v", ended, err)
	}
}

// TestRequestsThatAreOverTakeNoAnswer, and the reason is the one for which they are over.
func TestRequestsThatAreOverTakeNoAnswer(t *testing.T) {
	over := errors.New("the run is over")
	for name, text := range map[string]string{"answer": answer1, "error": error1, "no message": "oops"} {
		c := &message.Call{}
		c.MarkSent([]byte("1"))
		e := streamOf(t, linkOver(t, config.HTTP), "data: "+text+"\n\n")
		e.ctx, e.call, e.asked = endedBy(t, over), c, outgoingBody{Method: "tools/call", ID: []byte("1")}
		if out, err := io.ReadAll(e); !errors.Is(err, over) || len(out) > 0 {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if pass, _, err := e.take([]byte(text)); !errors.Is(err, over) || pass != nil {
			t.Errorf("%s that is read already: %q, %v", name, pass, err)
		}
		if r, ok := c.Result(); ok {
			t.Errorf("%s: the result is %q", name, r.Result)
		}
	}
	c := &message.Call{}
	c.MarkSent([]byte("1"))
	answer := &jsonrpc.Response{ID: requestOf(t, 1, "").ID, Result: json.RawMessage("{}")}
	pass, err := linkOver(t, config.HTTP).passable(endedBy(t, over), answer, "", c)
	if r, ok := c.Result(); !errors.Is(err, over) || pass != nil || ok {
		t.Errorf("an answer that is decoded already: %q, %v, %q", pass, err, r.Result)
	}
}

// choosyConn is the SDK's connection to a server that takes what is sent, or refuses it.
type choosyConn struct {
	mcp.Connection
	refuses error
	before  func() // it does
	sent    int
}

func (s *choosyConn) Write(context.Context, jsonrpc.Message) error {
	s.sent++
	s.before()
	return s.refuses
}

// TestMessagesThatSSERefusesCostTheirCallOnly, unless nobody knows why, or the link has ended.
func TestMessagesThatSSERefusesCostTheirCallOnly(t *testing.T) {
	refused := errors.New("refused")
	note := &jsonrpc.Request{Method: "notifications/cancelled"}
	for name, tt := range map[string]struct {
		msg           jsonrpc.Message
		own           bool // the request is the SDK's
		refuses, fail error
		stopped       bool
		want          error
		over          bool // the call is
	}{
		"call":                            {msg: requestOf(t, 1, "tools/call")},
		"refused call":                    {msg: requestOf(t, 1, "tools/call"), refuses: refused, fail: errors.New("403"), over: true},
		"call refused for no reason":      {msg: requestOf(t, 1, "tools/call"), refuses: refused, want: refused},
		"refused request of the SDK":      {msg: requestOf(t, 1, "tools/call"), own: true, refuses: refused, want: refused},
		"refused call after the end":      {msg: requestOf(t, 1, "tools/call"), refuses: refused, fail: errors.New("403"), stopped: true, want: refused},
		"notification":                    {msg: note, own: true},
		"refused notification":            {msg: note, own: true, refuses: refused},
		"refused notification, at an end": {msg: note, own: true, refuses: refused, stopped: true, want: refused},
		"refused answer":                  {msg: &jsonrpc.Response{ID: requestOf(t, 1, "").ID}, own: true, refuses: refused},
	} {
		r, c := linkOver(t, config.SSE), &message.Call{}
		ctx, made := t.Context(), c.Begin(t.Context())
		if !tt.own {
			ctx = made
		}
		if tt.stopped {
			r.Stop()
		}
		server := &choosyConn{refuses: tt.refuses, before: func() {
			if tt.fail != nil {
				c.Fail(tt.fail)
			}
		}}
		if err := (&eventConn{server, r}).Write(ctx, tt.msg); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if server.sent != 1 {
			t.Errorf("%s: sent %d times", name, server.sent)
		}
		if over := made.Err() != nil; over != tt.over {
			t.Errorf("%s: the call is over: %v", name, over)
		}
		c.GiveUp()
	}
}

func TestCallsOverSSEGetTheirAnswers(t *testing.T) {
	r, c := linkOver(t, config.SSE), &message.Call{}
	err := (&eventConn{&choosyConn{before: func() {}}, r}).Write(c.Begin(t.Context()), requestOf(t, 1, "tools/call"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.GiveUp()
	_, _ = io.ReadAll(streamOf(t, r, "event: endpoint\ndata: /\n\ndata: "+answer1+"\n\n"))
	if r, _ := c.Result(); string(r.Result) != `{"n":9007199254740993}` {
		t.Errorf("the result is %q", r.Result)
	}
}

func TestHeadersOfArgumentsAreForServersThatKnowThem(t *testing.T) {
	const asks = `{"properties":{"a":{"x-mcp-header":"A"}}}`
	for name, tt := range map[string]struct{ version, schema, want string }{
		"known":              {FirstWithHeaders, asks, "x"},
		"later":              {"2027-01-01", asks, "x"},
		"earlier":            {message.LegacyProtocol, asks, ""},
		"no version":         {"", asks, ""},
		"no header is named": {FirstWithHeaders, `{"properties":{"a":{}}}`, ""},
		"half a schema":      {FirstWithHeaders, strings.TrimSuffix(asks, "}"), ""},
		"an odd schema":      {FirstWithHeaders, `{"properties":{"b":true,"a":{"x-mcp-header":"A"}}}`, "x"},
	} {
		h := http.Header{}
		h.Set(versionKey, tt.version)
		err := parameterHeaders(t.Context(), h, &message.Call{Schema: json.RawMessage(tt.schema), Arguments: json.RawMessage(`{"a":"x"}`)})
		if got := h.Get("Mcp-Param-A"); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}
