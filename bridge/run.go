package bridge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/ongoing"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/room"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/oci/doctor"
)

// Run executes one request and returns its result. It never fails: every outcome is a
// status. Questions go to req.Ask.
func (s *Server) Run(ctx context.Context, req Request) *Result {
	can := req.Ask != nil
	req.elicits = mcpproxy.ElicitCapabilities{Form: can, URL: can, ByRequest: can}
	run := s.begin(req, s.runs.Connection(nil), !can)
	defer context.AfterFunc(ctx, contain.Func("ending a run", func() { run.Cancel(context.Cause(ctx)) }))()
	defer run.Cancel(errors.New("the run was left")) // if asking panics: otherwise it has ended
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
func (s *Server) begin(req Request, from *ongoing.Connection, noUser bool) *ongoing.Run[*Result] {
	s.o.Upstreams.SetElicits(req.elicits)
	o := ongoing.RunOptions{Connection: from, Session: req.Session, NoUser: noUser, Report: req.Progress}
	return s.runs.Begin(o, func(ctx context.Context, run *ongoing.Run[*Result]) (r *Result) {
		defer contain.Recover("running code", func(err error) {
			r = (&Result{}).fail(withStatus(StatusSandbox, err))
			r.summarize()
		})
		if req.Progress != nil {
			req.Progress = run.Report
		}
		start := time.Now()
		r = s.run(ctx, req, run)
		r.summarize()
		if r.cause != nil {
			s.o.Log.Debug("a run could not be carried out", "error", doctor.Detail(r.cause))
		}
		s.o.Log.Info("run", "status", r.Status, "servers", len(r.Servers), "ms", time.Since(start).Milliseconds())
		return r
	})
}

// run has the steps of one run, from top to bottom.
func (s *Server) run(ctx context.Context, req Request, run *ongoing.Run[*Result]) *Result {
	plan, err := s.read(ctx, &req)
	if err != nil {
		return plan.fail(err)
	}
	sess, err := s.sessions.acquire(ctx, req.Session, plan.timeout)
	if err != nil {
		return plan.fail(err)
	}
	defer s.sessions.release(sess)
	whole := false
	defer func() {
		if !whole {
			s.sessions.throwAway(sess)
		}
	}()
	r := s.runIn(ctx, req, run, plan, sess)
	whole = true
	return r
}

// read reads the code of a request, and validates all of it.
func (s *Server) read(ctx context.Context, req *Request) (plan, error) {
	release, err := room.Take(ctx, len(req.Code), room.Code)
	if err != nil {
		return plan{}, withStatus(StatusCancelled, errors.New("the call was cancelled while it waited for others to be read"))
	}
	defer release()
	req.Code = withoutFence(strings.TrimPrefix(req.Code, "\ufeff")) // some editors write the mark first
	return validate(*req, s.o)
}

// runIn has the steps of a run that has its session. If it panics, the interpreter is not
// used again.
func (s *Server) runIn(ctx context.Context, req Request, run *ongoing.Run[*Result], plan plan, sess *session) *Result {
	marks := run.Asker.Marks()
	marks.Add(sess.private...)
	progress := output.NewProgress(req.Progress)
	defer progress.End()
	g := s.newGate(plan, req, run.Asker, progress)
	if err := plan.askFirst(ctx, g, req, s.o.PackagesHere); err != nil {
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
	g.Resume(py.planned)

	forPictures, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if req.Input == nil { // with it the run may take as long as a person takes to type
		defer py.pictures.limit(plan.timeout+pictureGrace, cancel)()
	}
	files := s.artifacts.NewRun(forPictures)
	defer files.Discard()
	api := s.hostAPI(plan, py, req, g, files.Display)
	run.Attach(ctx, py.hold, g.Past)
	stop := py.codeStop(g.Stop, run.Cancel)
	if sess.name != "" {
		run.OnStop(stop.stop)
	}
	py.passOnOutput(req, progress, files)
	start := s.startMessage(plan, py, req)
	if req.Running != nil {
		i := &interrupter{in: py}
		start.Begun = i.begin
		req.Running(i.interrupt)
	}
	end := py.run(ctx, start, api)
	if why := stop.ended(); end.why == nil {
		end.why = why
	}
	end.done.Result = text.Bound(end.done.Result, py.pipes.MakeRoom(len(end.done.Result)))
	py.planned = g.Planned()
	reached := py.closeNetwork()
	files.SetPrivate(marks.Reads())
	published := py.collect(files, end.done.Kept)

	r := s.newResult(plan, py, end)
	networkNotes := r.addNetwork(plan, req.Code, reached)
	if req.Plan {
		r.addPlan(g.Plan())
	}
	_, r.effects, r.moreEffects = g.Past()
	r.Hint = cmp.Or(r.Hint, s.hint(r, plan, py, req, end, api.Silent()))
	s.defined.Add(req.Session, end.done.Names)
	s.written.Add(req.Session, writtenNames(published.Files))
	r.folder, r.Files, r.Pictures = published.Folder, published.Files, published.Pictures
	if published.Folder != "" {
		s.cleanFiles()
	}
	if r.IsError() {
		r.addCalls(g.CallLog())
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

// newGate makes the gate of one run. Without an asker nothing is asked.
func (s *Server) newGate(p plan, req Request, asker *consent.Run, progress *output.Progress) *gate.Gate {
	o := gate.Options{Upstreams: s.o.Upstreams, Granted: p.granted, Policy: p.policy, Plan: req.Plan, Log: s.o.Log}
	if asker != nil {
		o.Asker, o.Marks, o.Can = asker, asker.Marks(), req.elicits
	}
	if p.network != nil {
		_, o.Hosts = splitTargets(req.Servers)
	}
	if progress.Reports() {
		o.Progress = progress.Say
	}
	return gate.New(o)
}

// hostAPI makes the host API for the code of one run.
func (s *Server) hostAPI(p plan, py *interpreter, req Request, g *gate.Gate, display func(name string, data []byte, rasterFollows bool) error) *hostapi.API {
	o := hostapi.Options{
		Upstreams: s.o.Upstreams, Gate: g, Policy: p.policy, Saved: s.saved, Display: display, Printed: py.printed.readers(), First: s.first, Log: s.o.Log,
		StartPatience: s.o.StartPatience, PauseTime: py.pauseTime,
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
	case silent != nil && (r.Status == StatusTimeout || r.Status == StatusError && strings.Contains(r.Error, "is still starting")):
		return hints.Silent(silent.Server, time.Since(silent.Since))
	case r.Status == StatusTimeout && py.image.Compiling:
		return hints.Compiling(r.Stack)
	case r.Status != StatusError && r.Status != StatusSuccess:
		return ""
	}
	unawaited, inDef := after(runner.CauseUnawaited, e.done.Cause), after(runner.CauseUnawaitedInDef, e.done.Cause)
	if inDef != "" {
		unawaited = inDef
	}
	may, listed := p.packageNames(s.o)
	return hints.For(hints.Run{
		Failed: r.Status == StatusError, Error: r.Error, ToolValue: e.done.Cause == runner.CauseToolValue,
		HoldsJSON: strings.HasPrefix(e.done.Cause, runner.CauseJSONText), JSONText: after(runner.CauseJSONText, e.done.Cause),
		Unawaited: unawaited, InDef: inDef != "",
		Planned: len(r.Plan) > 0,
		Stdout:  r.Stdout, Stderr: r.Stderr, Code: req.Code, Image: py.image.Name,
		Packages: may, Listed: listed, Network: p.network != nil,
		Lookup: s.o.Upstreams.Lookup, Granted: p.granted,
		Mounted: s.o.Mounted, Written: &s.written,
		Earlier: &s.defined, Session: req.Session, Live: s.sessions.isLive, NoSessions: s.o.Sessions <= 0,
	})
}

// writtenNames are the files that a run has left in /workspace/out, by their names in it.
func writtenNames(files []artifacts.File) (names []string) {
	for _, f := range files {
		if f.Name != "stdout.txt" && f.Name != "stderr.txt" { // they are what was printed
			names = append(names, f.Name)
		}
	}
	return names
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
	s.background.Go(contain.Func("removing the files of old runs", func() { s.artifacts.Clean(time.Now()) }))
}

// warmUp begins preparations for the first run in the background.
func (s *Server) warmUp() {
	if s.o.Cached == nil || s.o.Warm == nil {
		return
	}
	s.background.Go(func() {
		defer contain.Recover("preparing the first run", nil)
		if image, ok := s.o.Cached(s.life); ok {
			s.o.Warm(newProcess(s.o, image, prepared{}, &output.Pipes{}))
		}
	})
}

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
	whole := false
	defer func() {
		if !whole {
			s.sessions.throwAway(sess)
		}
	}()
	py := s.sessions.resume(sess)
	if py == nil {
		whole = true
		return nil
	}
	defer time.AfterFunc(completionTime, contain.Func("ending a completion", func() { py.signal(syscall.SIGINT) })).Stop()
	py.pipes.Tee(req.Stdout, req.Stderr)
	start := s.startMessage(plan, py, req)
	start.Complete = dotted
	end := py.run(ctx, start, s.hostAPI(plan, py, req, s.newGate(plan, req, nil, output.NewProgress(nil)), noDisplay))
	s.sessions.endRun(sess, s.newResult(plan, py, end), end)
	whole = true
	return strings.Fields(end.done.Result)
}

// noDisplay refuses a picture: no code is meant to run.
func noDisplay(string, []byte, bool) error { return errors.New("no run is active") }
