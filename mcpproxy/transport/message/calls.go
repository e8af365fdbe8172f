package message

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A Reply is the result of a request, with the members that callers look at.
type Reply struct {
	Result  json.RawMessage // as the server wrote it
	IsError bool            // a tool says that it failed
	asks    bool            // it is none: the server wants input first
}

// Check returns an error for a result that cannot be returned to the caller, such as
// one that only asks for input.
func (r Reply) Check() error {
	if t := bytes.TrimSpace(r.Result); len(t) == 0 || t[0] != '{' {
		return errors.New("the server's result is not an object")
	}
	if r.asks {
		return errors.New("the server asks the user for input, who cannot be asked here")
	}
	return nil
}

// Call is a request of the SDK's session whose result is kept as the server wrote
// it. The SDK gets errKept in its place: it would read and copy the result several
// times over, and large integers would go through float64.
type Call struct {
	arguments json.RawMessage
	schema    json.RawMessage // of the tool
	cancel    context.CancelFunc
	sent      atomic.Bool // over HTTP
	failed    atomic.Pointer[error]

	id    jsonrpc.ID
	reply Reply
	kept  atomic.Bool // reply is there
}

type callKey struct{}

// NewCall returns a call with these arguments of a tool with this schema, which may
// both be nil.
func NewCall(arguments, schema json.RawMessage) *Call {
	return &Call{arguments: arguments, schema: schema}
}

// Begin returns the context for the SDK to make the call with; GiveUp ends it.
func (c *Call) Begin(ctx context.Context) context.Context {
	ctx, c.cancel = context.WithCancel(context.WithValue(ctx, callKey{}, c))
	return ctx
}

// GiveUp ends the call, to which no answer will come.
func (c *Call) GiveUp() { c.cancel() }

// Result returns the result, if it came.
func (c *Call) Result() (Reply, bool) {
	if c.kept.Load() {
		return c.reply, true
	}
	return Reply{}, false
}

// Fail records why the call fails, unless that is known already.
func (c *Call) Fail(err error) { c.failed.CompareAndSwap(nil, &err) }

// Failure returns what fail recorded, or nil.
func (c *Call) Failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// MarkSent reports whether the call is sent for the first time.
func (c *Call) MarkSent() bool { return c.sent.CompareAndSwap(false, true) }

// HasID reports whether the SDK gave this id to the call.
func (c *Call) HasID(id jsonrpc.ID) bool { return c.id == id }

// Tool returns the arguments of the call, and the schema of the tool.
func (c *Call) Tool() (arguments, schema json.RawMessage) { return c.arguments, c.schema }

// CallOf returns the call that ctx makes, or nil.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// errKept ends a call of the SDK whose result is kept. For an empty result instead
// the SDK's decoder makes 32 KiB of garbage, which takes half the processor time of a
// call (BenchmarkCallThroughProxy: 60 µs with it, 33 without).
var errKept = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the result is kept"}

// SetID notes the id that the SDK gave to the call.
func (c *Call) SetID(raw json.RawMessage) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(value)
	c.id = id
	return err
}

// Keep takes the result of an answer to the call, and returns the one that the SDK
// gets.
func (c *Call) Keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	if !c.kept.Load() { // else it is the caller's already
		c.reply = r
		c.kept.Store(true)
	}
	return &jsonrpc.Response{ID: id, Error: errKept}
}

// Calls are those that wait for an answer over a connection that has them all.
type Calls struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]*Call
}

// Add notes the call that ctx makes with a message, if that is its request.
func (c *Calls) Add(ctx context.Context, msg jsonrpc.Message) {
	made := CallOf(ctx)
	req, ok := msg.(*jsonrpc.Request)
	if made == nil || !ok || !req.IsCall() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[jsonrpc.ID]*Call{}
	}
	made.id = req.ID
	c.waiting[req.ID] = made
}

// Keep takes the result of an answer, and returns the one that the SDK gets.
func (c *Calls) Keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, ok := c.waiting[id]
	if !ok { // one of the SDK's own, or given up
		return &jsonrpc.Response{ID: id, Result: r.Result}
	}
	delete(c.waiting, id)
	return made.Keep(id, r)
}

// The ID of an answer stands at its beginning or at its end. Those of the SDK are
// numbers.
var (
	idFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\s*,`)
	})
	idLast = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"id"\s*:\s*([0-9]{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$`)
	})
)

// maxIDTail bounds where the ID of an answer is looked for at its end, in bytes.
const maxIDTail = 200

// Fail makes an answer that cannot be read the error of its call, and returns what the
// SDK gets: false if the call is not known.
func (c *Calls) Fail(raw []byte, err error) (*jsonrpc.Response, bool) {
	found := idFirst().FindSubmatch(raw)
	if found == nil {
		found = idLast().FindSubmatch(raw[max(0, len(raw)-maxIDTail):])
	}
	if found == nil {
		return nil, false
	}
	number, _ := strconv.ParseInt(string(found[1]), 10, 64)
	id, _ := jsonrpc.MakeID(float64(number))
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.waiting[id]; made != nil {
		made.Fail(err)
		delete(c.waiting, id)
	}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}}, true
}

// Forget gives a call up.
func (c *Calls) Forget(made *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[made.id] == made {
		delete(c.waiting, made.id)
	}
}
