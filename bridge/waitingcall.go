package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// returnTimeout is how long a call that comes back waits for an answer that is given
// elsewhere.
const returnTimeout = 25 * time.Second

// heartbeat is how often a client hears that its call goes on while the user thinks.
const heartbeat = 5 * time.Second

// A call waits for a run, which it has begun or resumes.
type call struct {
	server     *Server
	connection *connection
	display    display // of the client
	report     func(done, total int64, text string)
	request    *mcp.CallToolRequest
	digest     string // of what it asks for: a call that brings an answer has to ask for the same
	back       bool   // to a run that waits, whose answer may be given elsewhere meanwhile
	// showing is the question whose form has gone unanswered: it is not shown again to this
	// call. A client without a user cancels each form at once.
	showing string
}

// wait returns when the run has ended, or waits for an answer that this call cannot
// bring:
//
//	the client shows forms, before 2026-07-28   the form is shown during the call
//	the client shows forms, since 2026-07-28    input asks, and the next call has the answer
//	else, or no answer comes                    the user is asked elsewhere, as the result says,
//	                                            and the model calls again
//
// Whichever answer comes first counts; another way's question is then taken back. If ctx ends,
// so does the run.
func (c *call) wait(ctx context.Context, r *run.Run) (input *mcp.CallToolResult, res *run.Result) {
	r.ReportTo(c.report)
	defer r.ReportTo(nil)
	leave := context.AfterFunc(ctx, contain.Func("ending a run", func() { r.Cancel(context.Cause(ctx)) }))
	defer leave()
	defer contain.Undo(func() { r.Cancel(errAbandoned) }) // nothing would ever fetch the result
	questions := c.server.runs.Queue()
	timeout := time.NewTimer(returnTimeout)
	defer timeout.Stop()
	for {
		if ctx.Err() != nil { // this call can show no form any more, and the run ends
			<-r.Done()
		}
		changed := questions.Changed()
		q, waits := r.Asker.Pending()
		select {
		case <-r.Done():
			return nil, r.Deliver()
		case <-timeout.C:
			c.back = false
		default:
		}
		switch {
		case !waits:
		case c.display.canShow(&q) && c.display.multiRound && c.showing != q.ID && r.MayAsk():
			return c.inputRequired(r, &q), nil
		case c.display.canShow(&q) && !c.display.multiRound && c.showing != q.ID:
			c.showing = q.ID
			c.showForm(ctx, r, &q)
			continue
		case !c.back:
			return nil, r.Tell(&q)
		}
		select {
		case <-changed:
		case <-r.Done():
		case <-timeout.C:
			c.back = false
		}
	}
}

// errAbandoned ends a run whose call has failed.
var errAbandoned = fmt.Errorf("%w while the call waited for the run; the log has the details", contain.ErrInternal)

// showForm asks by a form during the call, and decides the question if the form was
// answered with one of its choices.
func (c *call) showForm(ctx context.Context, r *run.Run, q *consent.Question) {
	within := c.server.o.current().FormTimeout
	ctx, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("it was not answered within %s; it can still be answered with toolcell approvals", text.Duration(within)))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel(nil)
	go func() {
		defer close(ended)
		defer contain.Recover("telling a client that the user is asked", func(error) { cancel(nil) })
		c.whileAsked(ctx, r, q)
		cancel(errors.New("it was answered elsewhere, or its run has ended"))
	}()
	res, err := c.display.ask(ctx, c.request.Session, q)
	if err != nil {
		c.server.o.Log.Debug("asking by a form", "err", err)
		return
	}
	if answer, ok := answerOf(q, res); ok {
		_ = c.server.runs.Queue().Decide(q.ID, answer) // it may have been answered elsewhere just now
	}
}

// whileAsked tells the client now and then that its call goes on, until the question is
// decided or ctx ends.
func (c *call) whileAsked(ctx context.Context, r *run.Run, q *consent.Question) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := c.server.runs.Queue().Changed()
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
