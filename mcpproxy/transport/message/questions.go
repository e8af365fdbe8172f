package message

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
)

const (
	methodElicit    = "elicitation/create"
	methodCompleted = "notifications/elicitation/complete"
	methodCancelled = "notifications/cancelled"
)

// An Answerer answers what a server asks in the middle of a call: both ends are as in
// elicitation/create.
type Answerer func(ctx context.Context, params json.RawMessage) (result json.RawMessage, err error)

// questions are what a server asks before 2026-07-28: requests of its own. They are
// kept from the SDK, which would decode forms and answers and lose the order of fields
// and digits of numbers. What belongs to no call goes to the SDK, which declines it.
type questions struct {
	// respond sends an answer. The transport sets it before it reads.
	respond func(context.Context, *jsonrpc.Response) error
	closed  func(jsonrpc.ID) // forgets a request that gets no answer

	mu        sync.Mutex
	calls     []*asked                 // that can be asked in, oldest first
	awaited   map[string]chan struct{} // by ID of an elicitation
	completed []string                 // IDs, the last ones: some come before they are awaited
}

// asked is a call in which a server may ask.
type asked struct {
	call   *Call
	answer Answerer
	made   context.Context // of the call: ends early if it is cancelled
	ctx    context.Context // ends with the call
	turn   chan struct{}   // one question at a time
	work   sync.WaitGroup

	pending map[jsonrpc.ID]context.CancelFunc // guarded by questions.mu
}

// maxPending bounds the questions of one call that wait.
const maxPending = 8

// RespondWith sets how answers to requests of the server are sent.
func (n *Notifications) RespondWith(send func(context.Context, *jsonrpc.Response) error) {
	n.questions.respond = send
}

// AnswerDuring has answer called with what the server asks during a call. stop ends
// that, and returns when no question is left.
func (n *Notifications) AnswerDuring(ctx context.Context, c *Call, answer Answerer) (stop func()) {
	q := &n.questions
	made := ctx
	ctx, cancel := context.WithCancel(ctx)
	a := &asked{call: c, answer: answer, made: made, ctx: ctx, turn: make(chan struct{}, 1), pending: map[jsonrpc.ID]context.CancelFunc{}}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, a)
	return func() {
		q.mu.Lock()
		q.calls = slices.DeleteFunc(q.calls, func(b *asked) bool { return b == a })
		q.mu.Unlock()
		cancel()
		a.work.Wait()
	}
}

// take begins to answer a request, and reports false if it belongs to no call. c is
// the call over whose stream it came, if there is one; nothing else in a message says
// to which call it belongs. Otherwise the oldest call that can be asked in gets it.
// One whose result is there is over, though its caller may not have taken it yet.
func (q *questions) take(req *jsonrpc.Request, c *Call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.calls, func(a *asked) bool { return (c == nil || a.call == c) && !a.call.kept.Load() })
	if q.respond == nil || i < 0 || len(q.calls[i].pending) == maxPending || q.calls[i].pending[req.ID] != nil {
		return false
	}
	a := q.calls[i]
	ctx, cancel := context.WithCancel(a.ctx)
	a.pending[req.ID] = cancel
	a.work.Go(func() {
		defer cancel()
		defer contain.Recover("answering a question of a server", func(err error) {
			q.forget(a, req.ID)
			q.send(a, &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}})
		})
		resp := a.ask(ctx, req)
		q.forget(a, req.ID)
		switch {
		case resp != nil:
			q.send(a, resp)
		case a.ctx.Err() != nil:
			q.passOn(a, req, c)
		default: // the server has given it up
			q.closed(req.ID)
		}
	})
	return true
}

// sendWithin bounds sending an answer to a server that may not read.
const sendWithin = 5 * time.Second

// send sends an answer, also when the call that it was given in has ended: it may be
// about another one. A connection that broke ends the calls over it by itself.
func (q *questions) send(a *asked, resp *jsonrpc.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), sendWithin)
	defer cancel()
	_ = q.respond(ctx, resp)
}

// passOn takes a request whose call ended before it was answered to the next call: it
// may be about that one. If there is none, or the call was cancelled, it is declined.
func (q *questions) passOn(a *asked, req *jsonrpc.Request, c *Call) {
	if a.made.Err() == nil && c == nil && q.take(req, nil) {
		return
	}
	q.send(a, &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"action":"decline"}`)})
}

// ask answers one request when its turn comes, or returns nil if it was cancelled.
func (a *asked) ask(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil
	}
	result, err := a.answer(ctx, req.Params)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		var refused *jsonrpc.Error
		if !errors.As(err, &refused) {
			refused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		return &jsonrpc.Response{ID: req.ID, Error: refused}
	}
	return &jsonrpc.Response{ID: req.ID, Result: result}
}

func (q *questions) forget(a *asked, id jsonrpc.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(a.pending, id)
}

// cancel ends a question that the server gives up.
func (q *questions) cancel(id jsonrpc.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.calls {
		if cancel := a.pending[id]; cancel != nil {
			cancel()
		}
	}
}

// AwaitCompleted returns a channel that is closed when the server says that what the
// user does at an address is done, which it may have said already.
func (n *Notifications) AwaitCompleted(id string) (done <-chan struct{}, stop func()) {
	q := &n.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	one, shared := q.awaited[id]
	if !shared {
		one = make(chan struct{})
	}
	if slices.Contains(q.completed, id) {
		close(one)
		return one, func() {}
	}
	if q.awaited == nil {
		q.awaited = map[string]chan struct{}{}
	}
	q.awaited[id] = one
	return one, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.awaited[id] == one {
			delete(q.awaited, id)
		}
	}
}

// maxCompleted bounds the IDs that are kept, and maxID each in bytes.
const maxCompleted, maxID = 32, 256

func (q *questions) complete(params json.RawMessage) {
	var p struct {
		ElicitationID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &p) != nil || p.ElicitationID == "" || len(p.ElicitationID) > maxID {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if done := q.awaited[p.ElicitationID]; done != nil {
		close(done)
		delete(q.awaited, p.ElicitationID)
	}
	q.completed = append(q.completed, p.ElicitationID)
	if len(q.completed) > maxCompleted {
		q.completed = slices.Delete(q.completed, 0, 1)
	}
}
