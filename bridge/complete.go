package bridge

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/output"
)

// How long the search for names may take, until it is interrupted and until the
// session is ended.
const (
	completionTime = time.Second
	completionMost = 5 * time.Second
)

// Complete returns the names that may stand in place of the last part of a dotted
// name, as they are in the session of req. It returns none if the session has not
// run code yet, or is at work. The names come from the sandbox, and may be anything.
func (s *Server) Complete(ctx context.Context, req Request, dotted string) []string {
	s.background.Add(1)
	defer s.background.Done()
	req.Code, req.Timeout = "pass", min(completionMost, s.o.MaxTimeout)
	plan, err := validate(req, s.o)
	if err != nil || dotted == "" {
		return nil
	}
	sess, err := s.sessions.acquire(ctx, req.Session, completionTime)
	if err != nil {
		return nil
	}
	defer s.sessions.release(sess)
	py := s.sessions.resume(sess)
	if py == nil {
		return nil
	}
	defer time.AfterFunc(completionTime, func() { py.signal(syscall.SIGINT) }).Stop()
	py.pipes.Tee(req.Stdout, req.Stderr)
	start := s.startMessage(plan, py, req)
	start.Complete = dotted
	end := py.run(ctx, start, s.hostAPI(plan, py, req, nil, output.NewProgress(nil), noDisplay))
	s.sessions.endRun(sess, s.newResult(plan, py, end), end)
	return strings.Fields(end.done.Result)
}

// noDisplay refuses a picture: no code is meant to run.
func noDisplay(string, []byte, bool) error { return errors.New("no run is active") }
