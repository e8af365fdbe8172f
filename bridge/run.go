package bridge

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/ongoing"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/oci"
)

// A Request is one call of run_python.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called, "*" is all; and hosts, as https://HOST
	Timeout time.Duration // 0 is the default
	Session string        // session that keeps the sandbox for later runs; "" is none
	File    string        // that the code comes from: __file__, and its name in tracebacks
	Plan    bool          // a dry run: calls that may change something are listed in the result instead of being made
	Argv    []string      // sys.argv; a session keeps that of its first run. One empty name if nil

	// Progress receives the progress of preparations before the code runs and
	// then, with a total of 0, the progress of its calls. It may be nil.
	Progress func(done, total int64, text string)
	Lines    bool // Progress gets what the code prints, too
	// Stdout and Stderr receive the code's whole output as it is written, in
	// addition to the result. They may be nil.
	Stdout, Stderr io.Writer
	// Stdin is the code's standard input, which is empty if Stdin is nil. No more than a
	// pipe holds is read before the code asks for it. A session keeps the Stdin of its
	// first run.
	Stdin io.Reader
	// Input, if it is not nil, is used for sys.stdin instead. It is called when the
	// code reads a line, and returns the line with its line end, io.EOF, or
	// ErrInterrupted, which raises KeyboardInterrupt. The time that it takes does not
	// count as time of the run.
	Input func(ctx context.Context) (string, error)
	// Ask puts a question to the user and returns the answer. If it is nil, no user
	// can be asked. It is for callers of Run; clients are asked as they can be.
	Ask     func(ctx context.Context, q consent.Question) consent.Answer
	elicits mcpproxy.ElicitCapabilities // how what servers ask can be asked
	// Running, if it is not nil, is called when the code is about to run, with a
	// function that raises KeyboardInterrupt in it.
	Running func(interrupt func())
}

// ErrInterrupted is what Request.Input returns for Ctrl-C.
var ErrInterrupted = hostapi.ErrInterrupted

// Run executes one request and returns its result. It never fails: every outcome is a
// status. Questions go to req.Ask.
func (s *Server) Run(ctx context.Context, req Request) *Result {
	can := req.Ask != nil
	req.elicits = mcpproxy.ElicitCapabilities{Form: can, URL: can}
	run := s.begin(req, s.runs.Connection(nil), !can)
	defer context.AfterFunc(ctx, func() { run.Cancel(context.Cause(ctx)) })()
	for {
		changed := s.Desk().Changed()
		if q, waits := run.Asker.Pending(); waits {
			_ = s.Desk().Decide(q.ID, req.Ask(ctx, q)) // it may have been answered elsewhere
		}
		select {
		case <-run.Done():
			return run.Result()
		case <-changed:
		}
	}
}

// begin starts a run, which goes on by itself: calls attend it (server.go).
func (s *Server) begin(req Request, from *ongoing.Connection, nobody bool) *ongoing.Run[*Result] {
	s.o.Upstreams.SetElicits(req.elicits)
	o := ongoing.RunOptions{Connection: from, Session: req.Session, Nobody: nobody, Report: req.Progress}
	return s.runs.Begin(o, func(ctx context.Context, run *ongoing.Run[*Result]) *Result {
		if req.Progress != nil {
			req.Progress = run.Report
		}
		start := time.Now()
		r := s.run(ctx, req, run)
		r.summarize()
		if r.cause != nil {
			s.o.Log.Debug("a run could not be carried out", "error", oci.Detail(r.cause))
		}
		s.o.Log.Info("run", "status", r.Status, "servers", len(r.Servers), "ms", time.Since(start).Milliseconds())
		return r
	})
}

// run has the steps of one run, from top to bottom.
func (s *Server) run(ctx context.Context, req Request, run *ongoing.Run[*Result]) *Result {
	req.Code = withoutFence(req.Code)
	plan, err := validate(req, s.o)
	if err != nil {
		return plan.fail(err)
	}
	sess, err := s.sessions.acquire(ctx, req.Session, plan.timeout)
	if err != nil {
		return plan.fail(err)
	}
	defer s.sessions.release(sess)
	marks := run.Asker.Marks()
	marks.Add(sess.private...)
	if err := plan.askFirst(ctx, run.Asker, req); err != nil {
		return plan.fail(err)
	}
	if !run.TakeSlot(ctx) {
		return plan.fail(withStatus(StatusCancelled, errors.New("the call was cancelled while it waited for others to end")))
	}
	defer run.ReleaseSlot()
	py, err := s.acquireInterpreter(ctx, sess, plan, req)
	if err != nil {
		return plan.fail(err)
	}
	if err := py.openNetwork(ctx, plan.network); err != nil {
		return plan.fail(withStatus(StatusSandbox, err))
	}
	defer py.closeNetwork()
	newsAtStart := s.sessions.begin(sess)

	progress := output.NewProgress(req.Progress)
	defer progress.End()
	forPictures, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if req.Input == nil { // with it the run may take as long as a person takes to type
		defer py.pictures.limit(plan.timeout+pictureGrace, cancel)()
	}
	files := s.artifacts.NewRun(forPictures)
	defer files.Discard()
	api := s.hostAPI(plan, py, req, run.Asker, progress, files.Display)
	run.Attach(ctx, py.hold, api.Past)
	py.passOnOutput(req, progress, files)
	start := s.startMessage(plan, py, req)
	if req.Running != nil {
		i := &interrupter{in: py}
		start.Begun = i.begin
		req.Running(i.interrupt)
	}
	end := py.run(ctx, start, api)
	end.done.Result = text.Bound(end.done.Result, py.pipes.MakeRoom(len(end.done.Result)))
	reached := py.closeNetwork()
	files.SetPrivate(marks.Reads())
	published := py.collect(files, end.done.Kept)

	r := s.newResult(plan, py, end)
	networkNotes := r.addNetwork(plan, req.Code, reached)
	if req.Plan {
		r.addPlan(api.Plan())
	}
	r.Hint = cmp.Or(r.Hint, s.hint(r, plan, py, req, end, api.Silent()))
	s.defined.Add(req.Session, end.done.Names)
	r.folder, r.Files, r.Pictures = published.Folder, published.Files, published.Pictures
	if published.Folder != "" {
		s.cleanFiles()
	}
	if r.IsError() {
		r.addCalls(api.CallLog())
	}
	sess.private = marks.Reads()
	newsAtEnd := s.sessions.endRun(sess, r, end)
	r.Session = cmp.Or(newsAtEnd.state, newsAtStart.state)
	r.Notes = slices.Concat(plan.notes, newsAtStart.notes, r.hostNotes, api.Notes(), networkNotes, published.Notes, limitNotes(end, s.o.Limits), newsAtEnd.notes)
	return r
}

// pictureGrace bounds the decoding of pictures after the run's time is up. The answer
// comes within a second of the timeout.
const pictureGrace = 750 * time.Millisecond

// hostAPI makes the host API for the code of one run.
func (s *Server) hostAPI(p plan, py *interpreter, req Request, asker *consent.Run, progress *output.Progress, display func(name string, data []byte, rasterFollows bool) error) *hostapi.API {
	o := hostapi.Options{
		Upstreams: s.o.Upstreams, Granted: p.granted, Policy: p.policy, Saved: s.saved, Display: display,
		Plan: req.Plan, Printed: py.printed.readers(), First: s.first, Log: s.o.Log,
	}
	if asker != nil {
		o.Asker, o.Marks, o.Elicits = asker, asker.Marks(), req.elicits
	}
	if p.network != nil {
		_, o.Hosts = splitTargets(req.Servers)
	}
	if progress.Reports() {
		o.Progress = progress.Say
	}
	if req.Input != nil {
		o.Input = py.typedInput(req.Input)
	}
	return hostapi.New(o)
}

// startMessage returns the runner's start message.
func (s *Server) startMessage(p plan, py *interpreter, req Request) runner.Start {
	saved, err := s.saved.Names() // the runner asks for a source when it needs one
	if err != nil {
		s.o.Log.Warn("leaving out the saved tools", "err", err)
	}
	start := runner.Start{
		Code: req.Code, Argv: req.Argv, File: req.File, Saved: saved, Session: req.Session, Printed: py.printed.names(), Timeout: p.timeout,
		Input: req.Input != nil, Network: py.networkStart(),
	}
	for _, st := range p.servers {
		start.Servers = append(start.Servers, runner.Server{
			Name: st.Name, Alias: st.Alias, Description: text.Bound(st.Description, 1<<10), Granted: p.granted[st.Name],
			Place: slices.Index(p.order, st.Name) + 1,
		})
	}
	return start
}

// newResult assembles the result of a run whose code has ended.
func (s *Server) newResult(p plan, py *interpreter, e ending) *Result {
	r := p.result()
	r.Stdout, r.Stderr, r.Truncated = py.pipes.Lines()
	if e.done.Ready { // otherwise nothing ran, on whatever image
		r.hostNotes = slices.Clone(py.image.Notes)
	}
	if e.done.Ready && s.o.Missing != nil {
		r.hostNotes = append(r.hostNotes, s.o.Missing()...)
	}
	if s.o.Isolation != nil {
		r.Isolation = s.o.Isolation()
	}
	if err := stopError(p, e, r.Stderr, s.o.Limits); err != nil {
		if errors.Is(e.why, runner.ErrTimeout) && statusOf(err) == StatusTimeout {
			r.TimeoutSeconds, r.Stack = wholeSeconds(p.timeout), e.done.Stack
		}
		if e.err == nil && statusOf(err) == StatusSandbox { // the error quotes them
			r.Stderr, _ = splitAtReason(r.Stderr)
		}
		return r.fail(err)
	}
	if e.err != nil {
		// The code has ended, so an error in removing the sandbox is not an error of
		// the run.
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
	r.Hint = py.packages.programHint(r.Error)
	return r
}

// hint suggests how to fix what went wrong, or returns "".
func (s *Server) hint(r *Result, p plan, py *interpreter, req Request, e ending, silent *mcpproxy.SilentError) string {
	switch {
	case r.Status == StatusTimeout && silent != nil:
		return hints.Silent(silent.Server, time.Since(silent.Since))
	case r.Status == StatusTimeout && py.image.Compiling:
		return hints.Compiling(r.Stack)
	case r.Status != StatusError && r.Status != StatusSuccess:
		return ""
	}
	return hints.For(hints.Run{
		Failed: r.Status == StatusError, Error: r.Error, ToolValue: e.done.Cause == runner.CauseToolValue,
		Unawaited: after(runner.CauseUnawaited, e.done.Cause),
		Planned:   len(r.Plan) > 0,
		Stdout:    r.Stdout, Stderr: r.Stderr, Code: req.Code, Image: py.image.Name,
		Packages: s.packageNamer(p), Network: p.network != nil,
		Lookup: s.o.Upstreams.Lookup, Granted: p.granted,
		Earlier: &s.defined, Session: req.Session, Live: s.sessions.isLive, NoSessions: s.o.Sessions <= 0,
	})
}

// after returns what follows a prefix, or "".
func after(prefix, s string) string {
	rest, found := strings.CutPrefix(s, prefix)
	if !found {
		return ""
	}
	return rest
}

// cleanFiles removes the files of old runs in the background.
func (s *Server) cleanFiles() {
	s.background.Go(func() { s.artifacts.Clean(time.Now()) })
}

// warmUp begins preparations for the first run in the background.
func (s *Server) warmUp() {
	if s.o.Cached == nil || s.o.Warm == nil {
		return
	}
	s.background.Go(func() {
		if image, ok := s.o.Cached(s.life); ok {
			s.o.Warm(s.process(image, prepared{}, &output.Pipes{}))
		}
	})
}
