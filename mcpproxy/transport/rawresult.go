package transport

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// maxNesting is how deep values may nest, as in the SDK.
const maxNesting = 1000

// A Reply is the result of a request, with the members that callers look at.
type Reply struct {
	Result  json.RawMessage // as the server wrote it
	IsError bool            // a tool says that it failed
	asks    bool            // it is none: the server wants input of the user first
}

// call is a request of the SDK's session whose result is kept as the server wrote
// it. The SDK gets errKept in its place: it would read and copy the result several
// times over, and large integers would go through float64.
type call struct {
	method string
	params *Params
	giveUp context.CancelFunc
	sent   atomic.Bool // over HTTP
	failed atomic.Pointer[HTTPError]

	id    jsonrpc.ID
	reply Reply
	kept  atomic.Bool // reply is there
}

type callKey struct{}

// callOf returns the call that ctx makes, or nil.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// errKept ends a call of the SDK whose result is kept. For an empty result instead
// the SDK's decoder makes 32 KiB of garbage, which takes half the processor time of a
// call (BenchmarkCallThroughProxy: 60 µs with it, 33 without).
var errKept = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the result is kept"}

// setID notes the id that the SDK gave to the call.
func (c *call) setID(raw json.RawMessage) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(value)
	c.id = id
	return err
}

// keep takes the result of an answer to the call, and returns the one that the SDK
// gets.
func (c *call) keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	if !c.kept.Load() { // else it is the caller's already
		c.reply = r
		c.kept.Store(true)
	}
	return &jsonrpc.Response{ID: id, Error: errKept}
}

// calls are those that wait for an answer over a connection that has them all.
type calls struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]*call
}

// add notes the call that ctx makes with a message, if that is its request.
func (c *calls) add(ctx context.Context, msg jsonrpc.Message) {
	made := callOf(ctx)
	req, ok := msg.(*jsonrpc.Request)
	if made == nil || !ok || !req.IsCall() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[jsonrpc.ID]*call{}
	}
	made.id = req.ID
	c.waiting[req.ID] = made
}

// keep takes the result of an answer, and returns the one that the SDK gets.
func (c *calls) keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, ok := c.waiting[id]
	if !ok { // one of the SDK's own, or given up
		return &jsonrpc.Response{ID: id, Result: r.Result}
	}
	delete(c.waiting, id)
	return made.keep(id, r)
}

// forget gives a call up.
func (c *calls) forget(made *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[made.id] == made {
		delete(c.waiting, made.id)
	}
}

// An answer is a message that has a result.
type answer struct {
	id jsonrpc.ID
	Reply
}

// answerOf reads a message that is an answer with a result, and nothing else:
// nil for others, as whatever is unusual about a message is the SDK's to judge.
// The result stays where it is.
func answerOf(raw []byte) *answer {
	s := rawjson.Scanner{Text: raw}
	var a answer
	var version, number []byte
	count := 0
	ok := s.Object(func(name []byte) (ok bool) {
		count++
		switch string(name) {
		case `"jsonrpc"`:
			version, ok = s.Value(0)
		case `"id"`:
			number, ok = s.Value(0)
		case `"result"`:
			a.Reply, ok = readReply(&s)
		}
		return ok
	})
	s.SkipSpace()
	if !ok || s.Offset < len(raw) || count != 3 || string(version) != `"2.0"` || a.Result == nil {
		return nil
	}
	var value any
	if json.Unmarshal(number, &value) != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(value)
	if err != nil || !id.IsValid() {
		return nil
	}
	a.id = id
	return &a
}

// replyOf reads a result that the SDK handed over.
func replyOf(raw json.RawMessage) Reply {
	s := rawjson.Scanner{Text: raw}
	if r, ok := readReply(&s); ok {
		return r
	}
	return Reply{Result: raw}
}

// readReply passes over a result, which is an object.
func readReply(s *rawjson.Scanner) (r Reply, ok bool) {
	s.SkipSpace()
	from := s.Offset
	ok = s.Object(func(name []byte) bool {
		value, ok := s.Value(maxNesting - 2)
		switch string(name) {
		case `"isError"`:
			r.IsError = string(value) == "true"
		case `"resultType"`:
			r.asks = string(value) == `"input_required"`
		}
		return ok
	})
	r.Result = s.Text[from:s.Offset:s.Offset]
	return r, ok
}
