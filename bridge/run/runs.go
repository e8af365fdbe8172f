package run

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy"
)

// Runs are the runs of one process: it begins them, and keeps what outlives them. They are
// safe for concurrent use.
type Runs struct {
	o         Options
	self      *consent.Client // runs of no client
	queue     *consent.Queue
	saved     savedtools.Store
	sessions  *sessions
	artifacts *artifacts.Store
	budget    *runner.Budget
	slots     chan struct{} // full of runs that work at the same time

	life       context.Context // ends with Close
	end        context.CancelFunc
	background sync.WaitGroup // runs, sandboxes and background work

	mu      sync.Mutex
	active  map[string]*Run // by their own IDs
	waiting map[string]*Run // for the user, by the IDs of the questions that calls may come back with

	told    sync.Map    // what first was called with
	defined hints.Names // by the code of earlier runs
	written hints.Names // files that they have left in /workspace/out
}

// New makes Runs.
func New(o Options) *Runs {
	o = o.withDefaults()
	rs := &Runs{
		o: o, self: &consent.Client{Taint: &consent.Taint{}}, saved: savedtools.Open(o.ToolsDir, o.Project),
		artifacts: artifacts.New(artifacts.Options{Dir: o.RunsDir, Limits: o.Files, Pictures: o.Pictures, Log: o.Log}),
		queue:     consent.NewQueue(consent.Options{Log: o.Log}),
		budget:    runner.NewBudget(o.RunsDir), slots: make(chan struct{}, o.MaxParallel),
		active: map[string]*Run{}, waiting: map[string]*Run{},
	}
	rs.life, rs.end = context.WithCancel(context.Background())
	rs.sessions = newSessions(rs.life, o)
	return rs
}

// withDefaults returns the options with what counts in place of zero values.
func (o Options) withDefaults() Options {
	o.MaxTimeout = cmp.Or(o.MaxTimeout, 2*time.Minute)
	o.Timeout = min(cmp.Or(o.Timeout, 30*time.Second), o.MaxTimeout)
	o.StartTimeout = cmp.Or(o.StartTimeout, 25*time.Second)
	o.MaxOutput = cmp.Or(o.MaxOutput, 32<<10)
	o.MaxParallel = cmp.Or(o.MaxParallel, 16)
	o.SessionIdle = cmp.Or(o.SessionIdle, 30*time.Minute)
	o.ApprovalTimeout = cmp.Or(o.ApprovalTimeout, 10*time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// current returns the options of a run that begins, and a note on them for its caller.
func (rs *Runs) current() (o Options, note string, err error) {
	if rs.o.Current == nil {
		return rs.o, "", nil
	}
	o, note, err = rs.o.Current(rs.o)
	return o.withDefaults(), note, err
}

// Queue returns the questions of the runs to the user.
func (rs *Runs) Queue() *consent.Queue { return rs.queue }

// Close ends every active run and every session, and waits until their sandboxes are gone.
func (rs *Runs) Close() {
	rs.end()
	rs.background.Wait()
	rs.artifacts.Close()
	rs.sessions.close()
}

// End begins to end everything; Close waits for that.
func (rs *Runs) End() { rs.end() }

// Do begins a run, has req.Ask answer its questions, and returns its result. It never fails: every
// outcome is a status.
func (rs *Runs) Do(ctx context.Context, req Request) *Result {
	asks := req.Ask != nil
	req.noUser, req.Elicits = !asks, mcpproxy.ElicitCapabilities{Form: asks, URL: asks, ByRequest: asks}
	r := rs.Begin(req)
	defer context.AfterFunc(ctx, contain.Func("ending a run", func() { r.Cancel(context.Cause(ctx)) }))()
	defer r.Cancel(errors.New("the run was left")) // if asking panics: otherwise it has ended
	r.Asker.AnswerWith(ctx, r.done, req.Ask)
	return r.result
}

// Begin begins a run, which goes on by itself.
func (rs *Runs) Begin(req Request) *Run {
	rs.o.Upstreams.SetElicits(req.Elicits)
	return rs.Start(req, func(ctx context.Context, r *Run) (res *Result) {
		ctx, end := r.export(ctx)
		defer func() { end(res) }()
		defer contain.Recover("running code", func(err error) { res = panicked(err) })
		return r.execute(ctx)
	})
}

// Start is Begin with other work than to run code, for tests. The context of work ends with
// the run's Cancel, and with Close.
func (rs *Runs) Start(req Request, work func(ctx context.Context, r *Run) *Result) *Run {
	ctx, cancel := context.WithCancelCause(rs.life)
	r := &Run{
		runs: rs, req: req, cancel: cancel, slot: slot{slots: rs.slots}, done: make(chan struct{}), forgotten: make(chan struct{}), report: req.Progress,
		rounds: req.Rounds,
	}
	var note string
	if r.o, note, r.unusable = rs.current(); note != "" && rs.first(note) {
		r.notes = append(r.notes, note)
	}
	if r.req.Client == nil {
		r.req.Client = rs.self
	}
	if req.Progress != nil {
		r.req.Progress = r.Report
	}
	r.ID = NewID()
	r.record = rs.o.Record.Begin(r.ID, "")
	r.stdout.stream, r.stderr.stream = r.record.NewStream(), r.record.NewStream()
	r.Asker = rs.queue.Begin(consent.AskerOptions{
		ID: r.ID, Client: r.req.Client, NoUser: req.noUser, Timeout: r.o.ApprovalTimeout, Record: r.recordAsk, RecordLater: r.recordLater(), Stop: r.stop, Abort: cancel,
	})
	ended := rs.add(r)
	rs.background.Go(func() {
		defer close(r.done) // also if work panics
		defer contain.Recover("ending a run", func(err error) { r.result = panicked(err) })
		defer ended()
		defer cancel(nil)
		defer r.ReportTo(nil)
		defer r.Asker.End()
		r.result = work(ctx, r)
	})
	return r
}

// Prepare begins, in the background, what can be done before the first run: a client has
// connected.
func (rs *Runs) Prepare() {
	o, _, err := rs.current() // an error is the first run's
	rs.cleanFiles(o.Files)
	if err != nil || o.Cached == nil || o.Warm == nil {
		return
	}
	rs.background.Go(func() {
		defer contain.Recover("preparing the first run", nil)
		if image, ok := o.Cached(rs.life); ok {
			p := newProcess(o, image, resolvedPackages{}, &output.Pipes{})
			if o.Shown != nil {
				// A client that names another folder has sandboxes prepared after its first run.
				if folder, err := o.Shown.Resolve(""); err == nil {
					(&interpreter{}).show(&p, o.Shown, folder)
				}
			}
			o.Warm(rs.life, p)
		}
	})
}

// cleanFiles removes the files of old runs in the background.
func (rs *Runs) cleanFiles(l artifacts.Limits) {
	rs.artifacts.SetLimits(l)
	rs.background.Go(contain.Func("removing the files of old runs", func() { rs.artifacts.Clean(time.Now()) }))
}

// Files returns what earlier runs have left.
func (rs *Runs) Files() *artifacts.Store { return rs.artifacts }

// Discover has servers ended that are gone from the config files: a client lists tools.
func (rs *Runs) Discover() { _ = rs.o.Upstreams.Servers() }

// LogNotes logs the notes of a result that apply to every run, once each: they are for the user.
func (rs *Runs) LogNotes(r *Result) {
	for _, n := range r.hostNotes {
		if rs.first(n) {
			rs.o.Log.Warn(n)
		}
	}
}

// first reports whether it is called with text for the first time.
func (rs *Runs) first(text string) bool {
	_, known := rs.told.LoadOrStore(text, true)
	return !known
}
