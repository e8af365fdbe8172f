package transport

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

const (
	// firstID is above what the SDK numbers its own few requests with, and small
	// enough for a server that has 32 bits for it.
	firstID = 1 << 20
	// maxNesting is how deep values may nest, as in the SDK.
	maxNesting = 1000
	// cancelGrace is how long a server may take no more input until it is not told
	// that a call was given up.
	cancelGrace = 2 * time.Second
)

// requests are those that the server on a wire has not answered yet. They are
// made past the SDK's session, which reads and copies every message several
// times over, and whose results go through float64.
type requests struct {
	mu      sync.Mutex
	last    int64
	waiting map[int64]chan<- outcome
	ended   error // why there will be no more answers
}

// An outcome is what a request came to.
type outcome struct {
	Reply
	err error
}

// A Reply is the result of a request, with the members that callers look at.
type Reply struct {
	Result  json.RawMessage // as the server wrote it
	IsError bool            // a tool says that it failed
	asks    bool            // it is none: the server wants input of the user first
}

// add numbers a request. Its outcome comes once, unless it is dropped.
func (r *requests) add() (id int64, came <-chan outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return 0, nil, r.ended
	}
	r.last++
	id = firstID + r.last
	c := make(chan outcome, 1)
	r.waiting[id] = c
	return id, c, nil
}

func (r *requests) forget(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// deliver hands an answer to the one who waits for it. It reports whether the
// request was one of these, and not the SDK's.
func (r *requests) deliver(id jsonrpc.ID, o outcome) bool {
	number, ok := id.Raw().(int64)
	if !ok || number <= firstID {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.waiting[number]; ok { // else it was given up, or answered before
		c <- o
		delete(r.waiting, number)
	}
	return true
}

// failAll fails what waits, and whatever would come.
func (r *requests) failAll(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return
	}
	r.ended = err
	for _, c := range r.waiting {
		c <- outcome{err: err}
	}
	r.waiting = nil
}

// request sends one request and waits for its result.
func (t *stdioTransport) request(ctx context.Context, method string, params *Params) (Reply, error) {
	id, came, err := t.requests.add()
	if err != nil {
		return Reply{}, err
	}
	defer t.requests.forget(id)
	line, err := json.Marshal(requestMessage{"2.0", id, method, params})
	if err != nil {
		return Reply{}, err
	}
	if err := t.send(ctx, line); err != nil {
		t.giveUp(ctx, id)
		return Reply{}, err
	}
	select {
	case o := <-came:
		return o.Reply, o.err
	case <-ctx.Done():
		t.giveUp(ctx, id)
		return Reply{}, ctx.Err()
	}
}

// requestMessage is a request as it is written.
type requestMessage struct {
	Version string  `json:"jsonrpc"`
	ID      int64   `json:"id"`
	Method  string  `json:"method"`
	Params  *Params `json:"params,omitempty"`
}

// giveUp tells the server that the request is cancelled, if ctx has
// ended and the server takes it. The caller does not wait for that.
func (t *stdioTransport) giveUp(ctx context.Context, id int64) {
	if ctx.Err() == nil {
		return
	}
	line, err := json.Marshal(struct {
		Version string              `json:"jsonrpc"`
		Method  string              `json:"method"`
		Params  mcp.CancelledParams `json:"params"`
	}{"2.0", "notifications/cancelled", mcp.CancelledParams{RequestID: id, Reason: ctx.Err().Error()}})
	if err != nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
		defer cancel()
		_ = t.send(ctx, line) // a server that ended needs no telling
	}()
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
