package ongoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/form"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// maxRounds bounds the questions in results of one run: clients stop after ten.
const maxRounds = 9

// returnPatience is how long a call that comes back waits for an answer that is given
// elsewhere.
const returnPatience = 25 * time.Second

// heartbeat is how often a client hears that its call goes on while the user thinks.
const heartbeat = 5 * time.Second

// A Call is one that attends a run.
type Call struct {
	Connection *Connection
	Client     form.Client // what it can show
	Report     func(done, total int64, text string)

	request *mcp.CallToolRequest
	digest  string
	back    bool // to a run that waits, whose answer may be given elsewhere meanwhile
	// showing is the question whose form has gone unanswered: it is not shown again to this
	// call. A client without a user cancels each form at once.
	showing string
}

// NewCall returns a call to attend a run with. digest is that of what it asks for: a call
// that brings an answer has to ask for the same. report receives progress, and may be nil.
func (rs *Runs[R]) NewCall(request *mcp.CallToolRequest, digest string, report func(done, total int64, text string)) *Call {
	return &Call{
		Connection: rs.Connection(request.Session), Client: form.ClientOf(request), Report: report,
		request: request, digest: digest,
	}
}

// Attend returns when the run has ended, or waits for an answer that this call cannot
// bring:
//
//	the client shows forms, before 2026-07-28   the form is shown during the call
//	the client shows forms, since 2026-07-28    input asks, and the next call has the answer
//	else, or no answer comes                    the user is asked elsewhere, as approval says,
//	                                            and the model calls again
//
// Whichever answer comes first counts; another way's question is then taken back. If the
// run has ended, both results are nil. If ctx ends, so does the run.
func (rs *Runs[R]) Attend(ctx context.Context, r *Run[R], c *Call) (input *mcp.CallToolResult, approval *Approval) {
	r.reportTo(c.Report)
	defer r.reportTo(nil)
	leave := context.AfterFunc(ctx, contain.Func("ending a run", func() { r.Cancel(context.Cause(ctx)) }))
	defer leave()
	whole := false
	defer func() {
		if !whole { // it panics, and nothing would ever fetch the result
			r.Cancel(errUnattended)
		}
	}()
	input, approval = rs.attend(ctx, r, c)
	whole = true
	return input, approval
}

// errUnattended ends a run whose call has failed.
var errUnattended = fmt.Errorf("%w while the call waited for the run; the log has the details", contain.ErrInternal)

// attend is Attend for a call that is noted.
func (rs *Runs[R]) attend(ctx context.Context, r *Run[R], c *Call) (input *mcp.CallToolResult, approval *Approval) {
	patience := time.NewTimer(returnPatience)
	defer patience.Stop()
	for {
		if ctx.Err() != nil { // this call can show no form any more, and the run ends
			<-r.done
		}
		changed := rs.desk.Changed()
		q, waits := r.Asker.Pending()
		select {
		case <-r.done:
			rs.forget(r, "the result of this run was given already")
			return nil, nil
		case <-patience.C:
			c.back = false
		default:
		}
		switch {
		case !waits:
		case c.Client.CanShow(&q) && c.Client.MultiRound && c.showing != q.ID && r.mayAsk():
			return rs.inputRequired(r, &q, c), nil
		case c.Client.CanShow(&q) && !c.Client.MultiRound && c.showing != q.ID:
			c.showing = q.ID
			rs.showForm(ctx, r, &q, c)
			continue
		case !c.back:
			rs.park(r, &q)
			r.mu.Lock()
			r.told = q.ID
			r.mu.Unlock()
			return nil, newApproval(&q)
		}
		select {
		case <-changed:
		case <-r.done:
		case <-patience.C:
			c.back = false
		}
	}
}

// mayAsk counts a question in a result, and reports whether the client takes it.
func (r *Run[R]) mayAsk() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds++
	return r.rounds <= maxRounds
}

// showForm asks by a form during the call, and decides the question if the form was
// answered with one of its choices.
func (rs *Runs[R]) showForm(ctx context.Context, r *Run[R], q *consent.Question, c *Call) {
	ctx, stop := context.WithTimeoutCause(ctx, rs.o.FormTimeout, fmt.Errorf("it was not answered within %s; it can still be answered with toolcell approvals", text.Duration(rs.o.FormTimeout)))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel(nil)
	go func() {
		defer close(ended)
		defer contain.Recover("telling a client that the user is asked", func(error) { cancel(nil) })
		rs.whileAsked(ctx, r, q)
		cancel(errors.New("it was answered elsewhere, or its run has ended"))
	}()
	res, err := c.Client.Ask(ctx, c.request.Session, q)
	if err != nil {
		rs.o.Log.Debug("asking by a form", "err", err)
		return
	}
	if answer, ok := form.Answer(q, res); ok {
		_ = rs.desk.Decide(q.ID, answer) // it may have been answered elsewhere just now
	}
}

// whileAsked tells the client now and then that its call goes on, until the question is
// decided or ctx ends.
func (rs *Runs[R]) whileAsked(ctx context.Context, r *Run[R], q *consent.Question) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := rs.desk.Changed()
		if now, waits := r.Asker.Pending(); !waits || now.ID != q.ID {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			r.Report(0, 0, "waiting for the user's answer")
		case <-ctx.Done():
			return
		}
	}
}
