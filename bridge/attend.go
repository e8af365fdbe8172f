package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/form"
)

// A call attends a run until it has ended, or waits for an answer that this call cannot
// bring:
//
//	the client shows forms, before 2026-07-28   the form is shown during the call
//	the client shows forms, since 2026-07-28    the result asks, and the next call has the answer
//	else, or no answer comes                    the result is approval_needed, and the user is
//	                                            asked elsewhere; the model calls again
//
// Whichever answer comes first counts; another way's question is then taken back.

// maxRounds bounds the questions in results of one run: clients stop after ten.
const maxRounds = 9

// returnPatience is how long a call that comes back waits for an answer that is given
// elsewhere.
const returnPatience = 25 * time.Second

// heartbeat is how often a client hears that its call goes on while the user thinks.
const heartbeat = 5 * time.Second

// A caller is the call that attends a run.
type caller struct {
	call   *mcp.CallToolRequest
	req    Request // what it asks for: the call that brings an answer asks for the same
	client form.Client
	report func(done, total int64, text string)
	came   bool // back to a run that waits, whose answer may be given elsewhere meanwhile
}

// attend returns the answer to a call: the run's result, or what is asked.
func (s *Server) attend(ctx context.Context, f *flight, c *caller) (*mcp.CallToolResult, error) {
	f.follow(c.report)
	defer f.follow(nil)
	leave := context.AfterFunc(ctx, func() { f.cancel(context.Cause(ctx)) })
	defer leave()
	var showing string // the question whose form went unanswered
	patience := time.NewTimer(returnPatience)
	defer patience.Stop()
	for {
		if ctx.Err() != nil { // this call can show no form any more, and the run ends
			<-f.done
		}
		changed := s.desk.Changed()
		q, waits := f.run.Pending()
		select {
		case <-f.done:
			s.forget(f, "the result of this run was given already")
			return s.answer(f.result), nil
		case <-patience.C:
			c.came = false
		default:
		}
		switch {
		case !waits:
		case c.client.CanShow(&q) && c.client.MultiRound && f.mayAsk():
			return s.inputRequired(f, &q, c), nil
		case c.client.CanShow(&q) && !c.client.MultiRound && showing != q.ID:
			showing = q.ID
			s.showForm(ctx, f, &q, c)
			continue
		case !c.came || showing == q.ID:
			s.park(f, &q)
			f.mu.Lock()
			f.told = q.ID
			f.mu.Unlock()
			return s.answer(approvalNeeded(&q)), nil
		}
		select {
		case <-changed:
		case <-f.done:
		case <-patience.C:
			c.came = false
		}
	}
}

// mayAsk counts a question in a result, and reports whether the client takes it.
func (f *flight) mayAsk() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds++
	return f.rounds <= maxRounds
}

// showForm asks by a form during the call, and decides the question if the form was
// answered with one of its choices.
func (s *Server) showForm(ctx context.Context, f *flight, q *consent.Question, c *caller) {
	ctx, cancel := context.WithTimeout(ctx, s.o.FormTimeout)
	defer cancel()
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel()
	go func() {
		defer close(ended)
		s.whileAsked(ctx, f, q)
		cancel() // it was answered elsewhere
	}()
	res, err := c.call.Session.Elicit(ctx, c.client.Elicitation(q))
	if err != nil {
		s.o.Log.Debug("asking by a form", "err", err)
		return
	}
	if a, ok := form.Answer(q, res); ok {
		_ = s.desk.Decide(q.ID, a) // it may have been answered elsewhere just now
	}
}

// whileAsked tells the client now and then that its call goes on, until the question is
// decided or ctx ends.
func (s *Server) whileAsked(ctx context.Context, f *flight, q *consent.Question) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := s.desk.Changed()
		if now, waits := f.run.Pending(); !waits || now.ID != q.ID {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			f.progress(0, 0, "waiting for the user's answer")
		case <-ctx.Done():
			return
		}
	}
}

// inputID is the key of our question in a result.
const inputID = "approval"

// inputRequired is the result that asks, with a ticket to come back with.
func (s *Server) inputRequired(f *flight, q *consent.Question, c *caller) *mcp.CallToolResult {
	s.park(f, q)
	t := consent.Ticket{
		Question: q.ID, Run: q.Run, Nonce: newRunID() + newRunID(), Principal: s.principal(c.call), Digest: digestOf(c.req), Expires: q.ExpiresAt,
	}
	f.mu.Lock()
	f.nonce = t.Nonce
	f.mu.Unlock()
	return &mcp.CallToolResult{
		Content:       []mcp.Content{}, // nil is null, which is no content
		InputRequests: mcp.InputRequestMap{inputID: c.client.Elicitation(q)},
		RequestState:  s.sealer.Seal(t),
	}
}

// comeBack finds the run that a call with a ticket belongs to, and takes the answer
// that it brings. A ticket counts once.
func (s *Server) comeBack(call *mcp.CallToolRequest, req Request) (*flight, error) {
	t, id, err := s.sealer.Open(call.Params.RequestState)
	f, unknown := s.waiting(call.Session, id)
	if err != nil && f == nil && statusOf(unknown) == StatusCancelled {
		return nil, unknown // another process made it, or its run is over
	}
	if err != nil || f == nil || t.Principal != s.principal(call) || t.Digest != digestOf(req) || !f.use(t.Nonce) {
		if err == nil && unknown != nil && t.Principal == s.principal(call) {
			return nil, unknown
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: consent.ErrTicket.Error()}
	}
	q, ok := s.desk.Question(t.Question)
	res, _ := call.Params.InputResponses[inputID].(*mcp.ElicitResult)
	if ok && t.Run == q.Run && time.Now().Before(t.Expires) {
		if a, ok := form.Answer(&q, res); ok {
			_ = s.desk.Decide(q.ID, a) // it may have been answered elsewhere, or have expired
		}
	}
	return f, nil
}

// use takes a ticket, if it is the one that counts.
func (f *flight) use(nonce string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if nonce == "" || f.nonce != nonce {
		return false
	}
	f.nonce = ""
	return true
}

// principal names the client of a call, for as long as its connection lasts.
func (s *Server) principal(call *mcp.CallToolRequest) string {
	name, _ := s.principals.LoadOrStore(call.Session, newRunID()+newRunID())
	return name.(string)
}

// digestOf is the SHA-256 of what a request asks for.
func digestOf(req Request) string {
	body, err := json.Marshal([]any{req.Code, req.Servers, req.Timeout, req.Session, req.Plan})
	if err != nil {
		panic(err) // texts, a number and a bool only
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
