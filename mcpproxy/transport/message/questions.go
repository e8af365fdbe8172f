package message

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	methodElicit    = "elicitation/create"
	methodCompleted = "notifications/elicitation/complete"
	methodCancelled = "notifications/cancelled"
)

// A Question is an elicitation that a server sends during a call. Its receiver must call
// Answer.
type Question struct {
	Params  json.RawMessage // of elicitation/create
	Context context.Context // ends with the call, or when the server gives the question up

	cancel context.CancelFunc
	all    *questions
	of     *asked
	id     jsonrpc.ID
	stream *Call // over whose stream it came, if it is known
}

// Questions are the elicitations of a server that wait for an answer, in order.
type Questions chan *Question

// NewQuestions returns an empty queue, for one request at a time. Close it after the last.
func NewQuestions() Questions { return make(Questions, maxPending) }

// All returns the questions until they are closed, but for those that the server or the
// call has given up.
func (all Questions) All() iter.Seq[*Question] {
	return func(yield func(*Question) bool) {
		for q := range all {
			if q.Context.Err() != nil {
				q.Answer(nil, nil)
			} else if !yield(q) {
				return
			}
		}
	}
}

// questions handles elicitations of before 2026-07-28, which are requests of the server. The
// SDK does not see them: it would decode forms and answers, and lose the order of fields and
// digits of numbers. Those that belong to no call go to the SDK, which declines them.
type questions struct {
	// respond sends an answer. The transport sets it before it reads.
	respond func(context.Context, *jsonrpc.Response) error
	ids     wire.IDs // of the server's requests

	mu        sync.Mutex
	calls     []*asked                   // that can be asked in, oldest first
	awaited   map[string][]chan struct{} // by ID of an elicitation
	completed []string                   // IDs, the last ones: some come before they are awaited
}

// asked is a call in which a server may ask.
type asked struct {
	call      *Call
	questions Questions
	made      context.Context // of the call: ends early if it is cancelled
	ctx       context.Context // ends with the call
	work      sync.WaitGroup  // questions without an answer

	pending map[jsonrpc.ID]context.CancelFunc // guarded by questions.mu
}

// maxPending bounds the questions of one call that wait.
const maxPending = 8

// RespondWith sets how answers to requests of the server are sent.
func (n *Notifications) RespondWith(send func(context.Context, *jsonrpc.Response) error) {
	n.questions.respond = send
}

// Collect puts the elicitations of the server during a call into a queue. stop ends that, and
// returns when all of them are answered.
func (n *Notifications) Collect(ctx context.Context, c *Call, into Questions) (stop func()) {
	q := &n.questions
	during, cancel := context.WithCancel(ctx)
	a := &asked{call: c, questions: into, made: ctx, ctx: during, pending: map[jsonrpc.ID]context.CancelFunc{}}
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

// take hands an elicitation to the call that it belongs to, and reports false if there is
// none. c is the call over whose stream it came, if there is one; a message does not say to
// which call it belongs. Otherwise the oldest call with a queue gets it. A call that has its
// result is over, even if its caller has not taken it yet.
func (q *questions) take(id jsonrpc.ID, params json.RawMessage, c *Call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.calls, func(a *asked) bool { return (c == nil || a.call == c) && !a.call.kept.Load() })
	if q.respond == nil || i < 0 || len(q.calls[i].pending) == maxPending || q.calls[i].pending[id] != nil {
		return false
	}
	a := q.calls[i]
	ctx, cancel := context.WithCancel(a.ctx)
	a.pending[id] = cancel
	a.work.Add(1)
	a.questions <- &Question{params, ctx, cancel, q, a, id, c} // there is room: no more are pending
	return true
}

// Answer answers a question with a result of elicitation/create, or with an error. If its
// call has ended, the question goes to the next call instead, since it may be about that
// one. If there is none, or the call was cancelled, it is declined.
func (q *Question) Answer(result json.RawMessage, err error) {
	defer q.of.work.Done()
	ended := q.Context.Err() != nil
	q.cancel()
	q.all.mu.Lock()
	delete(q.of.pending, q.id)
	q.all.mu.Unlock()
	answer := &jsonrpc.Response{ID: q.id, Result: result}
	switch {
	case !ended && err != nil:
		refused, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			refused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		answer.Error = refused
	case !ended:
	case q.of.ctx.Err() == nil: // the server has given it up
		q.all.ids.Close(q.id)
		return
	case q.of.made.Err() == nil && q.stream == nil && q.all.take(q.id, q.Params, nil):
		return
	default:
		answer.Result = json.RawMessage(`{"action":"decline"}`)
	}
	// Send it even if the call has ended: the server may wait for it in another one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.of.ctx), sendWithin)
	defer cancel()
	_ = q.all.respond(ctx, answer)
}

// sendWithin bounds sending an answer to a server that may not read.
const sendWithin = 5 * time.Second

// cancel ends a question that the server has withdrawn.
func (q *questions) cancel(id jsonrpc.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.calls {
		if cancel := a.pending[id]; cancel != nil {
			cancel()
		}
	}
}

// AwaitCompleted returns a channel that is closed when the server reports that the user is
// done at an address, which it may have reported already.
func (n *Notifications) AwaitCompleted(id string) (done <-chan struct{}, stop func()) {
	q := &n.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	one := make(chan struct{})
	if slices.Contains(q.completed, id) {
		close(one)
		return one, func() {}
	}
	if q.awaited == nil {
		q.awaited = map[string][]chan struct{}{}
	}
	q.awaited[id] = append(q.awaited[id], one)
	return one, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		others := slices.DeleteFunc(q.awaited[id], func(c chan struct{}) bool { return c == one })
		if q.awaited[id] = others; len(others) == 0 {
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
	for _, done := range q.awaited[p.ElicitationID] {
		close(done)
	}
	delete(q.awaited, p.ElicitationID)
	q.completed = append(q.completed, p.ElicitationID)
	if len(q.completed) > maxCompleted {
		q.completed = slices.Delete(q.completed, 0, 1)
	}
}
