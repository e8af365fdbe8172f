// Package ongoing keeps the runs under way. A run goes on by itself: while the user is
// asked, the call that began it may return, and a later call comes back to the run.
//
// It promises that
//   - only calls of the connection that began a run come back to it,
//   - an answer in a call counts with the ticket of the last result that asked, once, and
//     for the same request,
//   - the calls that attend a run when it ends get its result, and later ones are told
//     what became of it, also by the process after this one,
//   - a run that waits for the user has no slot.
//
// What a run does, and how its code is frozen, is up to its caller.
package ongoing

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/endings"
	"github.com/toolcell/toolcell/internal/contain"
)

// Options configure Runs. The zero value works.
type Options struct {
	Parallel    int            // runs that work at the same time, further ones wait; 16 if 0
	Patience    time.Duration  // for the user's answer; 10 min if 0
	FormTimeout time.Duration  // for an answer by a form during a call; 45 s if 0
	Endings     *endings.Store // what became of runs that waited; of this process only if nil
	Log         *slog.Logger   // nothing is logged if nil

	Keep func(consent.Question) error // as consent.Options.Keep
}

// A Result is what a run ends with.
type Result interface {
	// Outcome returns the status of the run, lines about what it has changed, and how many
	// more such calls there were, for a call that comes back too late.
	Outcome() (status string, effects []string, more int)
}

// Runs are the runs of one server. They are safe for concurrent use.
type Runs[R Result] struct {
	o           Options
	life        context.Context
	background  sync.WaitGroup
	desk        *consent.Desk
	sealer      *consent.Sealer
	connections connections
	slots       chan struct{}

	mu   sync.Mutex
	byID map[string]*Run[R] // by the IDs of the questions that calls may come back with
}

// New returns Runs that end with life.
func New[R Result](life context.Context, o Options) *Runs[R] {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Patience <= 0 {
		o.Patience = 10 * time.Minute
	}
	if o.FormTimeout <= 0 {
		o.FormTimeout = 45 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Endings == nil {
		o.Endings = endings.Open("", o.Log)
	}
	return &Runs[R]{
		o: o, life: life, desk: consent.NewDesk(consent.Options{Patience: o.Patience, Log: o.Log, Keep: o.Keep}), sealer: consent.NewSealer(),
		connections: connections{open: map[*mcp.ServerSession]*Connection{}}, slots: make(chan struct{}, o.Parallel), byID: map[string]*Run[R]{},
	}
}

// Desk returns the questions of the runs.
func (rs *Runs[R]) Desk() *consent.Desk { return rs.desk }

// Wait waits until all runs have ended.
func (rs *Runs[R]) Wait() { rs.background.Wait() }

// A Run is one under way.
type Run[R Result] struct {
	Asker *consent.Run // its questions to the user

	connection *Connection // whose calls may take part
	session    string      // that it runs in, if any
	cancel     context.CancelCauseFunc
	slot       slot

	done   chan struct{}
	result R // once done
	// forgotten is closed when no call can come back to it any more.
	forgotten chan struct{}
	forget    sync.Once

	mu     sync.Mutex
	onStop func(why error)                      // in place of cancel; nil before OnStop
	report func(done, total int64, text string) // to the call that attends; nil if none does
	nonce  string                               // of the ticket that counts
	rounds int                                  // of questions in results
	ids    []string                             // of its questions that calls may come back with
	told   string                               // the one of them that a model was told to come back with
}

// RunOptions describe a run.
type RunOptions struct {
	Connection *Connection // that begins it
	Session    string      // that it runs in; "" is none
	NoUser     bool        // no user can be asked
	Report     func(done, total int64, text string)
}

// Begin starts a run that goes on until work returns. The context of work ends with the
// run's Cancel, and with that of New.
func (rs *Runs[R]) Begin(o RunOptions, work func(ctx context.Context, r *Run[R]) R) *Run[R] {
	ctx, cancel := context.WithCancelCause(rs.life)
	r := &Run[R]{
		connection: o.Connection, session: o.Session, cancel: cancel, slot: slot{slots: rs.slots},
		done: make(chan struct{}), forgotten: make(chan struct{}), report: o.Report,
	}
	r.Asker = rs.desk.Begin(consent.RunOptions{
		ID: newName(), Client: o.Connection, Name: o.Connection.Client, NoUser: o.NoUser, Marks: o.Connection.Marks, Stop: r.stop, Abort: cancel,
	})
	rs.background.Go(func() {
		defer close(r.done) // whoever waits goes on, also if work panics: then the result is the zero one
		defer contain.Recover("ending a run", nil)
		defer cancel(nil)
		defer r.Asker.End()
		r.result = work(ctx, r)
	})
	return r
}

// newName returns a short name for a run, for people who are asked about several.
func newName() string { return strings.ToLower(rand.Text()[:8]) }

// Cancel ends a run.
func (r *Run[R]) Cancel(why error) { r.cancel(why) }

// OnStop has f end the run when the user stops it or does not answer, in place of Cancel.
func (r *Run[R]) OnStop(f func(why error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onStop = f
}

// stop is consent.RunOptions.Stop.
func (r *Run[R]) stop(why error) {
	r.mu.Lock()
	f := r.onStop
	r.mu.Unlock()
	if f == nil {
		f = r.cancel
	}
	f(why)
}

// Done returns a channel that is closed when the run has ended.
func (r *Run[R]) Done() <-chan struct{} { return r.done }

// Result returns what the run has ended with. It waits until then.
func (r *Run[R]) Result() R {
	<-r.done
	return r.result
}

// Report reports progress to the call that attends the run, if one does.
func (r *Run[R]) Report(done, total int64, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report != nil {
		r.report(done, total, text)
	}
}

// reportTo has the run report to a call. "Progress notifications MUST stop after
// completion." (MCP specification, Progress)
func (r *Run[R]) reportTo(report func(done, total int64, text string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report = report
}

// TakeSlot waits for one of the slots for runs that work at the same time, and reports
// whether the run got it before ctx ended.
func (r *Run[R]) TakeSlot(ctx context.Context) bool { return r.slot.take(ctx) }

// ReleaseSlot gives the slot back for good.
func (r *Run[R]) ReleaseSlot() { r.slot.release() }

// Attach says how the run's code is frozen while the user is asked, when the run's slot is
// lent to another one, and what it has done so far (see [consent.Run.Attach]).
func (r *Run[R]) Attach(ctx context.Context, freeze func() (thaw func()), past func() (calls int, effects []string, more int)) {
	r.Asker.Attach(func() (release func()) {
		thaw, lent := freeze(), false
		defer func() {
			if !lent {
				thaw()
			}
		}()
		r.slot.lend()
		lent = true
		return func() {
			defer thaw()
			r.slot.take(ctx)
		}
	}, past)
}
