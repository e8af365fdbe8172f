package bridge

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// A Request is one call of run_python.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called; "*" is all
	Timeout time.Duration // 0 is the default
	Session string        // name of what keeps the sandbox for later runs; "" is none
	Argv    []string      // the code's sys.argv, in a session of its first run; one empty name if nil

	// Progress gets the work before the code can run, and then, with a total of
	// 0, what servers say of the calls they work on. It may be nil.
	Progress func(done, total int64, text string)
	Lines    bool // Progress gets what the code prints, too
	// Stdout and Stderr get what the code writes, at once and whole, besides
	// the result. They may be nil.
	Stdout, Stderr io.Writer
}

// Run executes one request and says how it went. It never fails: every way to
// end is a status.
func (s *Server) Run(ctx context.Context, req Request) *Result {
	s.runs.Add(1)
	defer s.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	start := time.Now()
	r := s.run(ctx, req)
	r.summarize()
	s.o.Log.Info("run", "status", r.Status, "servers", len(r.Servers), "ms", time.Since(start).Milliseconds())
	return r
}

// run is the story of one call, from top to bottom.
func (s *Server) run(ctx context.Context, req Request) *Result {
	plan, err := validate(req, s.o)
	if err != nil {
		return plan.fail(err)
	}
	sess, err := s.sessions.acquire(ctx, req.Session, plan.timeout)
	if err != nil {
		return plan.fail(err)
	}
	defer s.sessions.release(sess)
	freeSlot, err := s.takeSlot(ctx)
	if err != nil {
		return plan.fail(err)
	}
	defer freeSlot()
	in, err := s.interpreter(ctx, sess, req.Progress)
	if err != nil {
		return plan.fail(err)
	}
	begun := s.sessions.begin(sess)

	progress := &progress{report: req.Progress}
	defer progress.end()
	files := s.artifacts.NewRun()
	defer files.Discard()
	api := s.hostAPI(plan, progress, files.Display)
	in.follow(req, progress, files)
	end := in.run(ctx, s.start(plan, req), api)
	left := in.collect(files)

	r := s.report(plan, in, end)
	r.folder, r.Files, r.Pictures = left.Folder, left.Files, left.Pictures
	if left.Folder != "" {
		s.cleanFiles()
	}
	if r.IsError() {
		r.addCalls(api.CallLog())
	}
	ended := s.sessions.endRun(sess, r, end)
	r.Session = cmp.Or(ended.state, begun.state)
	r.Notes = slices.Concat(plan.notes, begun.notes, r.standing, api.Notes(), left.Notes, limitNotes(end, s.o.Limits), ended.notes)
	return r
}

// takeSlot waits for a place among the runs that go on at once, and returns what
// frees it.
func (s *Server) takeSlot(ctx context.Context) (free func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, withStatus(StatusCancelled, errors.New("the call was cancelled while it waited for others to end"))
	}
}

// hostAPI makes what answers the code of one run.
func (s *Server) hostAPI(p plan, progress *progress, display func(name string, data []byte, rasterFollows bool) error) *hostapi.API {
	o := hostapi.Options{
		Upstreams: s.o.Upstreams, Granted: p.granted, Policy: s.o.Policy.NewRun(), Saved: s.saved, Display: display, Log: s.o.Log,
	}
	if progress.reports() {
		o.Progress = progress.say
	}
	return hostapi.New(o)
}

// start is what the runner begins with.
func (s *Server) start(p plan, req Request) runner.Start {
	saved, err := s.saved.Names() // the runner asks for a source when it needs one
	if err != nil {
		s.o.Log.Warn("leaving out the saved tools", "err", err)
	}
	start := runner.Start{Code: req.Code, Argv: req.Argv, Saved: saved, Session: req.Session, Timeout: p.timeout}
	for _, st := range p.servers {
		start.Servers = append(start.Servers, runner.Server{
			Name: st.Name, Alias: st.Alias, Description: text.Bound(st.Description, 1<<10), Granted: p.granted[st.Name],
		})
	}
	return start
}

// report puts together the result of a run whose code has ended.
func (s *Server) report(p plan, in *interpreter, e ending) *Result {
	r := p.result()
	var cutOut, cutErr bool
	r.Stdout, cutOut = in.pipes.Stdout.Lines()
	r.Stderr, cutErr = in.pipes.Stderr.Lines()
	r.Truncated = cutOut || cutErr
	r.standing = slices.Clone(in.image.Notes)
	if s.o.Missing != nil {
		r.standing = append(r.standing, s.o.Missing()...)
	}
	if s.o.Isolation != nil {
		r.Isolation = s.o.Isolation()
	}
	if err := stopped(p, e, r.Stderr, s.o.Limits); err != nil {
		if errors.Is(e.why, runner.ErrTimeout) && statusOf(err) == StatusTimeout {
			r.TimeoutSeconds, r.Stack = wholeSeconds(p.timeout), e.done.Stack
		}
		return r.fail(err)
	}
	if e.err != nil {
		// The code is done; that its sandbox is hard to remove is not its fault.
		s.o.Log.Error("ending a sandbox", "err", e.err)
	}
	code := e.exit.Code
	r.ExitCode, r.Result = &code, text.Bound(e.done.Result, s.o.MaxOutput)
	if code == 0 {
		r.Status = StatusSuccess
		return r
	}
	r.Status, r.Error = StatusError, text.Bound(e.done.Error, maxErrorText)
	if r.Error == "" {
		r.Error = describeExit(code)
	}
	r.Hint = missingHint(r.Error, in.image.Name)
	return r
}

// cleanFiles removes the files of old runs in the background.
func (s *Server) cleanFiles() {
	s.runs.Go(func() { s.artifacts.Clean(time.Now()) })
}

// prepare begins to make ready for the first run, beside what the client does.
func (s *Server) prepare() {
	if s.o.Cached == nil || s.o.Warm == nil {
		return
	}
	s.runs.Go(func() {
		if image, ok := s.o.Cached(s.life); ok {
			s.o.Warm(s.process(image, &output.Pipes{}))
		}
	})
}
