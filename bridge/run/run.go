// Package run executes the code of calls: a [Run] leads from a [Request] to its [Result], and
// [Runs] keep what outlives one: sessions, questions to the user, files.
//
// It promises that a run always ends with a Result that says what happened, however the code
// behaves, and that code reaches only the servers that the request named. A run goes on by
// itself: while the user is asked its code is paused, it does not count toward the limit of
// concurrent runs, and calls of the client that began it can come back to it. It does not judge
// what a granted server lets the code do.
package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/limits"
)

// A Run is one execution of code, from its request to its result.
type Run struct {
	ID    string
	Asker *consent.Asker // its questions to the user

	runs   *Runs
	req    Request
	o      Options // as they were when it began
	cancel context.CancelCauseFunc
	slot   slot
	done   chan struct{}
	result *Result     // once done
	record *record.Run // nil if there is no record

	unusable error // why nothing can run as the user wants it now

	// What validate finds in the request.
	timeout time.Duration
	servers []mcpproxy.ServerStatus // that can be used, as they are at the start
	granted map[string]bool         // names of those that may be called
	order   []string                // the same names, as the request has them
	policy  *policy.Enforcer        // the rules, as they are at the start
	egress  *hosts.Grant            // what may be reached; nil is nothing
	needs   *Needs                  // of the header; nil if there is none
	lowered bool                    // the request asked for a longer timeout
	folder  string                  // of the client, which the code can read; "" if it can read none
	notes   []string                // for the caller

	// What its steps use, each from the step on that makes it.
	session  *session
	gate     *gate.Gate
	python   *interpreter
	deadline *deadline.Deadline // of its code
	files    *artifacts.Collector
	stdout   printed
	stderr   printed
	used     limits.Usage
	api      *hostapi.API

	mu      sync.Mutex
	code    *codeStop                            // what the user stops in place of the run; nil outside of sessions
	keeping gate.Keeping                         // what the record may keep of it, as is known at its start
	entered *entered                             // while its code runs
	report  func(done, total int64, text string) // to the call that waits for the run; nil if none does

	// For calls that come back to it: the IDs of its questions that they may bring, the one of
	// them that a model was told, and the ticket that counts with the digest of its request.
	ids            []string
	told           string
	ticket, digest string
	rounds         int           // of questions in results
	forgotten      chan struct{} // closed when no call can come back any more
	forgetOnce     sync.Once

	span atomic.Pointer[signals.Span] // nil if nothing is exported
}

// execute has the steps of a run, from top to bottom.
func (r *Run) execute(ctx context.Context) *Result {
	start := time.Now()
	res := r.onRecord(ctx)
	res.Summarize()
	res.Run = r.ID
	r.recordEnd(res, time.Since(start))
	r.noteCost(res)
	r.noteLost(res)
	if res.cause != nil {
		r.runs.o.Log.DebugContext(ctx, "a run could not be carried out", "error", doctor.Detail(res.cause))
	}
	r.runs.o.Log.InfoContext(ctx, "run", "run", r.ID, "status", res.Status, "servers", len(res.Servers), "ms", time.Since(start).Milliseconds())
	return res
}

// onRecord reads the request, records it, and has its code run.
func (r *Run) onRecord(ctx context.Context) *Result {
	err := r.unusable
	if err != nil {
		err = withStatus(StatusSandbox, err)
	} else {
		err = r.read(ctx)
	}
	if errRecord := r.recordStart(); errRecord != nil && r.o.RecordRequired {
		return r.fail(withStatus(StatusRecord, fmt.Errorf("nothing runs without a record, and this run cannot be recorded: %w", errRecord)))
	}
	if err != nil {
		return r.fail(err)
	}
	return r.inSession(ctx)
}

// inSession has the code of the request run in its session. If that panics, the session's
// interpreter is not used again.
func (r *Run) inSession(ctx context.Context) *Result {
	sess, err := r.runs.sessions.acquire(ctx, r.req.Session, r.timeout)
	if err != nil {
		return r.fail(err)
	}
	defer r.runs.sessions.release(sess)
	defer contain.Undo(func() { r.runs.sessions.throwAway(sess) })
	r.session, sess.idle = sess, r.o.SessionIdle
	return r.runCode(ctx)
}

// read reads the code of the request, and validates all of it.
func (r *Run) read(ctx context.Context) error {
	release, err := memory.Take(ctx, len(r.req.Code), memory.Code)
	if err != nil {
		return cancelled(ctx, "while it waited for others to be read")
	}
	defer release()
	r.req.Code = withoutFence(strings.TrimPrefix(r.req.Code, "\ufeff")) // some editors write the mark first
	return r.validate()
}

// runCode has the steps of a run that has its session.
func (r *Run) runCode(ctx context.Context) *Result {
	taint := r.req.Client.Taint
	taint.Add(r.session.private...)
	r.gate = r.newGate()
	r.findFolder()
	if err := r.askFirst(ctx); err != nil {
		return r.refuseFirst(err)
	}
	if !r.slot.take(ctx) {
		return r.fail(cancelled(ctx, "while it waited for others to end"))
	}
	defer r.slot.close()
	if err := r.acquireInterpreter(ctx); err != nil {
		return r.fail(err)
	}
	if err := r.python.openNetwork(ctx, r.egress); err != nil {
		return r.fail(withStatus(StatusSandbox, err))
	}
	defer r.python.closeNetwork()
	r.recordReady()
	newsAtStart := r.runs.sessions.begin(r.session)
	r.gate.Resume(r.python.planned)

	r.deadline = deadline.New(r.timeout)
	defer r.deadline.Stop()
	forPictures, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.deadline.AfterFunc(func() {
		time.AfterFunc(pictureGrace, contain.Func("ending the decoding of pictures", func() { cancel(context.DeadlineExceeded) }))
	})
	r.files = r.runs.artifacts.Within(r.o.Pictures).NewCollector(forPictures, r.ID)
	defer r.files.Discard()
	r.api = r.newAPI(r.files.Display)
	began := time.Now()
	end := r.talk(ctx)
	reached := r.python.closeNetwork()
	r.files.SetPrivate(taint.Reads())
	published := r.python.collect(r.files, end.done.Kept)

	res := r.newResult(end)
	networkNotes := r.addNetwork(res, reached)
	r.addCalls(res)
	res.Hint = cmp.Or(res.Hint, r.hint(res, end), r.refusedHint(res, began))
	r.runs.defined.Add(r.req.Session, end.done.Names)
	r.runs.written.Add(r.req.Session, writtenNames(published.Files))
	res.folder, res.Files, res.Pictures = published.Folder, published.Files, published.Pictures
	if published.Folder != "" {
		r.runs.cleanFiles(r.o.Files)
	}
	r.session.private = taint.Reads()
	keeping := r.gate.Keeping()
	r.session.keeping.Store(&keeping)
	r.noteUsage()
	newsAtEnd := r.runs.sessions.endRun(r.session, res, end)
	res.Session = cmp.Or(newsAtEnd.state, newsAtStart.state)
	res.Notes = slices.Concat(r.notes, newsAtStart.notes, res.hostNotes, r.api.Notes(), networkNotes, published.Notes, limitNotes(end, r.python.limits), newsAtEnd.notes)
	return res
}

// pictureGrace bounds the decoding of pictures after the run's time is up. The answer
// comes within a second of the timeout.
const pictureGrace = 750 * time.Millisecond

// newGate makes the gate of the run. Without a user nothing is asked.
func (r *Run) newGate() *gate.Gate {
	o := gate.Options{Upstreams: r.runs.o.Upstreams, Granted: r.granted, Policy: r.policy, Plan: r.req.Plan, Record: r.record, RecordRequired: r.o.RecordRequired, Earlier: r.session.keepingNow(), Log: r.runs.o.Log}
	if r.Asker != nil {
		o.Asker, o.Taint, o.Can = r.Asker, r.req.Client.Taint, r.req.Elicits
	}
	if r.egress != nil {
		_, o.Hosts = splitTargets(r.req.Servers)
	}
	if r.req.Progress != nil {
		o.Progress = r.say
	}
	return gate.New(o)
}

// newAPI makes what answers the code's requests to the host.
func (r *Run) newAPI(display func(name string, data []byte, rasterFollows bool) error) *hostapi.API {
	o := hostapi.Options{
		Upstreams: r.runs.o.Upstreams, Gate: r.gate, Policy: r.policy, Saved: r.runs.saved, Display: display, Printed: r.python.previous.readers(),
		First: r.runs.first, Record: r.record, Log: r.runs.o.Log,
	}
	if r.req.Input != nil {
		o.Input = r.python.typedInput(r.req.Input)
	}
	return hostapi.New(o)
}

// talk has Python run the code, and answers its requests until it has ended. Meanwhile the run
// can be stopped, and its code is paused while the user is asked.
func (r *Run) talk(ctx context.Context) ending {
	r.Asker.Attach(r.suspending(ctx, r.python.hold), r.gate.Past)
	defer r.enter(r.python)()
	stop := &codeStop{python: r.python, gate: r.gate, kill: r.cancel}
	if r.session.name != "" {
		r.setStop(stop)
	}
	r.passOnOutput()
	start := r.startMessage()
	if r.req.Running != nil {
		i := &interrupter{in: r.python}
		start.Begun = i.begin
		r.req.Running(i.interrupt)
	}
	ctx = mcpproxy.WithStartWait(ctx, mcpproxy.StartWait{Max: r.o.StartTimeout, Pauses: r.deadline.Allow(r.o.StartTimeout)})
	end := r.python.run(ctx, start, r.gate, r.api)
	if why := stop.ended(); end.why == nil {
		end.why = why
	}
	end.done.Result = text.Bound(end.done.Result, r.python.pipes.MakeRoom(len(end.done.Result)))
	end.denied = r.gate.HasDenied()
	r.python.planned = r.gate.Planned()
	return end
}

// passOnOutput also sends the output of the code to the writers of the request, to the client
// that follows it, and to files if it is too long.
func (r *Run) passOnOutput() {
	create := r.files.Create
	if r.runs.o.RunsDir == "" {
		create = nil // then no line says that the whole of it could not be kept
	}
	stdout := r.req.Stdout
	r.python.pipes.KeepWhole(create, stdout != nil, r.req.Stderr != nil)
	if r.req.Lines && r.req.Progress != nil {
		stdout = output.Follow(stdout, r.say)
	}
	r.python.pipes.Tee(withRecord(stdout, &r.stdout, r.record), withRecord(r.req.Stderr, &r.stderr, r.record))
}

// startMessage returns the runner's start message.
func (r *Run) startMessage() runner.Start {
	saved, err := r.runs.saved.Names() // the runner asks for a source when it needs one
	if err != nil {
		r.runs.o.Log.Warn("leaving out the saved tools", "err", err)
	}
	start := runner.Start{
		Code: r.req.Code, Argv: r.req.Argv, File: r.req.File, Saved: saved, Session: r.req.Session, Printed: r.python.previous.names(), Deadline: r.deadline,
		Input: r.req.Input != nil, Network: r.python.network.Inside(),
	}
	for _, st := range r.servers {
		start.Servers = append(start.Servers, runner.Server{
			Name: st.Name, Alias: st.Alias, Description: text.Bound(st.Description, 1<<10), Granted: r.granted[st.Name],
			Place: slices.Index(r.order, st.Name) + 1,
		})
	}
	return start
}

// Client returns the one that began the run.
func (r *Run) Client() *consent.Client { return r.req.Client }

// Done returns a channel that is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Result returns what the run has ended with. It waits until then.
func (r *Run) Result() *Result {
	<-r.done
	return r.result
}

// Cancel ends the run.
func (r *Run) Cancel(why error) { r.cancel(why) }

// setStop has the user stop the code in place of the run.
func (r *Run) setStop(c *codeStop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = c
}

// stop ends the run since the user has stopped it, or has not answered.
func (r *Run) stop(why error) {
	r.mu.Lock()
	code := r.code
	r.mu.Unlock()
	if code != nil {
		code.stop(why)
		return
	}
	r.cancel(why)
}

// Report reports progress to the call that waits for the run, if one does.
func (r *Run) Report(done, total int64, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report != nil {
		r.report(done, total, text)
	}
}

// say reports a text.
func (r *Run) say(text string) { r.Report(0, 0, text) }

// ReportTo has the run report to a call; nil ends that. "Progress notifications MUST stop after
// completion." (MCP specification, Progress)
func (r *Run) ReportTo(report func(done, total int64, text string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report = report
}

// suspending returns what freezes the code while the user is asked, and meanwhile releases the
// run's slot.
func (r *Run) suspending(ctx context.Context, freeze func() (thaw func())) func() (resume func()) {
	return func() (resume func()) {
		thaw := freeze()
		defer contain.Undo(thaw)
		r.slot.release()
		return func() {
			defer thaw()
			r.slot.take(ctx)
		}
	}
}

// NewID returns an ID for a run, which no other has and nobody can guess.
func NewID() string { return strings.ToLower(rand.Text()[:12]) }
