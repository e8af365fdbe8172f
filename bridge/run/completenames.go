package run

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/deadline"
)

// How long the search for names may take, until it is interrupted and until the
// session is ended.
const (
	completionTime = time.Second
	completionMax  = 5 * time.Second
)

// Complete returns the names that may stand in place of the last part of a dotted
// name, as they are in the session of req. It returns none if the session has not
// run code yet, or is at work. The names come from the sandbox, and may be anything.
func (rs *Runs) Complete(ctx context.Context, req Request, dotted string) []string {
	rs.background.Add(1)
	defer rs.background.Done()
	o, _, err := rs.current()
	req.Code, req.Timeout, req.Progress = "pass", min(completionMax, o.MaxTimeout), nil
	r := &Run{runs: rs, o: o, req: req}
	if err != nil || r.validate() != nil || dotted == "" {
		return nil
	}
	sess, err := rs.sessions.acquire(ctx, req.Session, completionTime)
	if err != nil {
		return nil
	}
	r.session = sess
	defer rs.sessions.release(sess)
	defer contain.Undo(func() { rs.sessions.throwAway(sess) })
	r.python = rs.sessions.resume(sess)
	if r.python == nil {
		return nil
	}
	defer time.AfterFunc(completionTime, contain.Func("ending a completion", func() { r.python.signal(syscall.SIGINT) })).Stop()
	r.python.pipes.Tee(req.Stdout, req.Stderr)
	r.deadline = deadline.New(r.timeout)
	start := r.startMessage()
	start.Complete, r.gate = dotted, r.newGate()
	end := r.python.run(ctx, start, r.gate, r.newAPI(noDisplay))
	rs.sessions.endRun(sess, r.newResult(end), end)
	return strings.Fields(end.done.Result)
}

// noDisplay refuses a picture: no code is meant to run.
func noDisplay(string, []byte, bool) error { return errors.New("no run is active") }
