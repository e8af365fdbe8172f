package message

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// A Reply is the result of a request, with the members that callers need.
type Reply struct {
	Result  json.RawMessage // as the server wrote it
	IsError bool            // a tool says that it failed
	asks    bool            // it is none: the server wants input first
	deep    bool            // it nests deeper than a value may
}

// Check returns an error for a result that cannot be returned to the caller, such as
// one that only asks for input.
func (r Reply) Check() error {
	if err := r.CheckList(); err != nil {
		return err
	}
	if r.deep {
		return fmt.Errorf("the server's result nests deeper than %d", maxNesting)
	}
	return nil
}

// CheckList is Check for a list, in which an item may nest too deep: the others can be used.
func (r Reply) CheckList() error {
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
	Arguments json.RawMessage
	Schema    json.RawMessage // of the tool

	cancel context.CancelFunc
	sent   atomic.Bool // over HTTP
	failed atomic.Pointer[error]

	id    jsonrpc.ID
	reply Reply
	kept  atomic.Bool // reply is there
}

type callKey struct{}

// Begin returns the context for the SDK to make the call with; GiveUp ends it.
func (c *Call) Begin(ctx context.Context) context.Context {
	ctx, c.cancel = context.WithCancel(context.WithValue(ctx, callKey{}, c))
	return ctx
}

// GiveUp ends the call, which will get no answer.
func (c *Call) GiveUp() { c.cancel() }

// Result returns the result, if there is one.
func (c *Call) Result() (Reply, bool) {
	if c.kept.Load() {
		return c.reply, true
	}
	return Reply{}, false
}

// Fail records why the call fails, unless a reason is recorded already.
func (c *Call) Fail(err error) { c.failed.CompareAndSwap(nil, &err) }

// Failure returns what fail recorded, or nil.
func (c *Call) Failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// MarkSent notes the id that the SDK gave to the call, and reports whether it is sent for the
// first time.
func (c *Call) MarkSent(id json.RawMessage) bool {
	if !c.sent.CompareAndSwap(false, true) {
		return false
	}
	c.id, _ = wire.OurID(id)
	return true
}

// HasID reports whether the SDK gave this id to the call.
func (c *Call) HasID(id jsonrpc.ID) bool { return c.id == id }

// CallOf returns the call that ctx belongs to, or nil.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// errKept ends a call of the SDK whose result is kept. For an empty result instead
// the SDK's decoder makes 32 KiB of garbage, which takes half the processor time of a
// call (BenchmarkCallThroughProxy: 60 µs with it, 33 without).
var errKept = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the result is kept"}

// Keep takes the result of an answer to the call, and returns the one that the SDK
// gets.
func (c *Call) Keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	if !c.kept.Load() { // else it is the caller's already
		c.reply = r
		c.kept.Store(true)
	}
	return &jsonrpc.Response{ID: id, Error: errKept}
}

// Calls are the requests that wait for an answer over one connection.
type Calls struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]waiter
	last    int64 // ID that the SDK gave: it counts them

	strays int   // unreadable answers without a known request
	why    error // the last of them
}

// A waiter is one of them: a Call, or a request of the SDK's own, with its method.
type waiter struct {
	call   *Call
	method string
}

// Add adds a message that is sent, if it is a request.
func (c *Calls) Add(ctx context.Context, msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !req.IsCall() {
		id, ok := wire.OurID(wire.Member(req.Params, "requestId"))
		if ok && req.Method == methodCancelled && c.waiting[id].call == nil { // a Call is forgotten by its caller
			delete(c.waiting, id)
		}
		return
	}
	if id, ok := req.ID.Raw().(int64); ok {
		c.last = max(c.last, id)
	}
	w := waiter{CallOf(ctx), req.Method}
	if w.call == nil && req.Method == methodListen {
		return // it has no answer until the session ends
	}
	if w.call != nil {
		w.call.id = req.ID
	}
	if c.waiting == nil {
		c.waiting = map[jsonrpc.ID]waiter{}
	}
	c.waiting[req.ID] = w
}

// CheckID returns an error for an answer whose ID no request has had. The ID of an earlier
// request is in order: the answer is late, or a second one.
func (c *Calls) CheckID(id jsonrpc.ID, said error) *StrayError {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := id.Raw().(int64)
	if ok && i > 0 && i <= c.last {
		return nil
	}
	written := fmt.Append(nil, id.Raw())
	if said == nil {
		said = unknownID(written)
	}
	return &StrayError{string(written), said}
}

// Keep takes the result of an answer, and returns the one that the SDK gets.
func (c *Calls) Keep(id jsonrpc.ID, r Reply) *jsonrpc.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[id] // none if it is given up, or was never asked
	delete(c.waiting, id)
	if w.call != nil {
		return w.call.Keep(id, r)
	}
	return AnswerTo(id, w.method, r.Result)
}

// Answered notes an answer that is an error.
func (c *Calls) Answered(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// Fail returns err as the answer to the requests that a message answers, and known as false
// if it cannot tell which these are.
func (c *Calls) Fail(ctx context.Context, raw []byte, err error) (failed []jsonrpc.Message, known bool) {
	found := wire.Traces(ctx, raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range found {
		id, ok := wire.OurID(t.ID)
		if !ok || t.Request {
			continue
		}
		known = true
		f := c.fail(id, err)
		if f == nil { // it is counted as answered already, but the session has not got the answer
			f = failedAnswer(nil, id, err)
		}
		failed = append(failed, f)
	}
	return failed, known
}

// Forget removes a call that its caller has given up.
func (c *Calls) Forget(made *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[made.id].call == made {
		delete(c.waiting, made.id)
		c.strays = max(0, c.strays-1) // it may have been its answer
	}
}

// Undecoded takes bytes that are not a message: they may be an answer that a request waits
// for. It returns errors for the requests that they answer. taken is false if no request
// waits for them, as with a line of a log.
func (c *Calls) Undecoded(ctx context.Context, raw []byte, why error) (failed []jsonrpc.Message, taken bool) {
	var stray *StrayError
	var bad *wire.Unreadable
	var useless *UnreadableError
	switch {
	case errors.As(why, &stray):
		c.Stray(stray)
		return nil, true
	case errors.As(why, &bad), errors.As(why, &useless):
		failed = c.unreadable(ctx, raw, why)
	}
	return failed, len(failed) > 0
}

// unreadable returns errors for the requests that an unreadable answer is for.
func (c *Calls) unreadable(ctx context.Context, raw []byte, why error) (failed []jsonrpc.Message) {
	why = unreadable(why)
	found := wire.Traces(ctx, raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range found {
		if id, ok := wire.OurID(t.ID); ok && !t.Request && (t.Answer || t.Version) { // else a line of a log
			if f := c.fail(id, why); f != nil {
				failed = append(failed, f)
			}
		} else if t.Answer && !t.Request {
			c.stray(why)
		} else if t.Cut {
			failed = append(failed, c.cut(t.Begins, why)...)
		}
	}
	return failed
}

// cut takes an answer that was cut off in its ID, after these digits. If only one request
// fits, it fails that.
func (c *Calls) cut(digits string, why error) []jsonrpc.Message {
	var ids []jsonrpc.ID
	for id := range c.waiting {
		if strings.HasPrefix(fmt.Sprint(id.Raw()), digits) {
			ids = append(ids, id)
		}
	}
	others := digits != "" && strings.Trim(digits, "0123456789") == ""
	switch {
	case len(ids) == 0 && others: // it is for no request that waits
		return nil
	case len(ids) == 1:
		return []jsonrpc.Message{c.fail(ids[0], why)}
	}
	c.stray(why)
	return nil
}

// Stray takes an answer without an ID that could be one of ours.
func (c *Calls) Stray(why error) {
	if _, ok := errors.AsType[*jsonrpc.Error](why); !ok {
		why = unreadable(why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stray(why)
}

func (c *Calls) stray(why error) {
	if len(c.waiting) > 0 {
		c.strays, c.why = c.strays+1, why
	}
}

// Strays returns errors for all requests that wait, once there are as many answers without
// an ID as requests: no other answers will come.
func (c *Calls) Strays() (failed []jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.strays == 0 {
		return nil
	}
	if c.strays >= len(c.waiting) {
		for id := range c.waiting {
			failed = append(failed, c.fail(id, c.why))
		}
		c.strays = 0
	}
	return failed
}

// fail ends a request with why, or returns nil if no such request waits.
func (c *Calls) fail(id jsonrpc.ID, why error) jsonrpc.Message {
	w, waits := c.waiting[id]
	if !waits {
		return nil
	}
	delete(c.waiting, id)
	return failedAnswer(w.call, id, why)
}
