package consent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// An Asker asks the questions of one run, one after the other. Calls that come together
// are one question. It is safe for concurrent use.
type Asker struct {
	o     AskerOptions
	queue *Queue
	life  context.Context
	over  context.CancelFunc
	turn  sync.Mutex // of the one question that waits

	mu      sync.Mutex
	hold    func() (release func())
	past    func() (calls int, effects []string, more int)
	open    *batch        // that calls may still join
	more    time.Time     // until then other calls may follow at once
	onWay   int           // calls that may come to be asked at any moment
	arrived chan struct{} // closed when none is on its way

	// The fields below are guarded by queue.mu.
	granted  map[toolKey]grant  // what is allowed until the end
	believed map[toolKey]string // the hints that were accepted
	pending  *Question
	stopped  error // by the user, or since no answer came: nothing more is asked
	ended    bool
}

type toolKey struct{ server, tool, identity string }

// A grant lets all calls of a tool out until the run ends.
type grant struct {
	reasons  []string // for which the user was asked
	question string   // ID of the one that was answered last
}

func (c Call) key() toolKey { return toolKey{c.Server, c.Tool, c.Identity} }

// AskerOptions describe a run to a queue.
type AskerOptions struct {
	ID      string
	Client  *Client         // of the run
	NoUser  bool            // no user can be asked: every question fails with ErrNoUser
	Command bool            // the user has typed a command, and its calls are asked about
	Stop    func(why error) // ends the run: with ErrStopped, or ErrExpired
	Abort   func(why error) // ends it and its sandbox; Stop if nil
	Timeout time.Duration   // for an answer; 10 min if 0
	// Record is called with each question when it is asked, decided and revoked, in this order.
	// It must not call the queue, and may be nil.
	Record func(q Question)
	// RecordLater is called instead after End, when an approval for the connection is revoked. It
	// should keep little of the run in memory. Record is called if it is nil.
	RecordLater func(q Question)
}

// A Client is the connection of one MCP client, or what else begins runs.
type Client struct {
	Name string // what it calls itself, with its version; often empty
	// Program and Version are the parts of Name, and Protocol the version of MCP that it speaks.
	Program, Version, Protocol string
	// Taint are what was read from private servers, since the model behind the connection
	// carries data from run to run. Runs of it that still wait keep them when it has ended.
	Taint *Taint
	// Lasting: it stays connected from run to run, so the user may allow something until
	// Queue.Disconnect.
	Lasting bool

	// The fields below are guarded by the queue's mu.
	granted map[grantKey]string // IDs of the questions that allow something for the connection
	ended   bool                // by Disconnect
}

// Begin begins a run. It has to be ended.
func (d *Queue) Begin(o AskerOptions) *Asker {
	if o.Client == nil {
		o.Client = &d.self
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Minute)
	r := &Asker{o: o, queue: d, granted: map[toolKey]grant{}, believed: map[toolKey]string{}}
	r.life, r.over = context.WithCancel(context.Background())
	return r
}

// Attach says how the run is frozen, and what it has done so far: the number of its
// calls, lines about those that may have changed something, and how many more of these
// there were. Before it there is no code to freeze.
func (r *Asker) Attach(hold func() (release func()), past func() (calls int, effects []string, more int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold, r.past = hold, past
}

// End ends the run, and with it the question that waits.
func (r *Asker) End() {
	r.over()
	r.mu.Lock()
	r.hold, r.past = nil, nil // its decided questions are kept for a while, and it with them
	r.mu.Unlock()
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	r.ended = true
	if r.pending != nil && r.pending.State == Pending {
		_ = r.queue.settle(r.pending, Ended, Answer{})
	}
	r.leave()
}

// leave lets the run's questions keep nothing of it but what Revoke needs: they may be kept as
// long as the connection. queue.mu is held.
func (r *Asker) leave() {
	left := &Asker{o: AskerOptions{Client: r.o.Client, Record: r.o.RecordLater}, queue: r.queue, ended: true}
	if left.o.Record == nil {
		left.o.Record = r.o.Record
	}
	for _, q := range r.queue.questions {
		if q.run == r {
			q.run = left
		}
	}
}

// AnswerWith has ask answer the questions, until done is closed.
func (r *Asker) AnswerWith(ctx context.Context, done <-chan struct{}, ask func(ctx context.Context, q Question) Answer) {
	for {
		changed := r.queue.Changed()
		if q, waits := r.Pending(); waits {
			_ = r.queue.Decide(q.ID, ask(ctx, q)) // it may have been answered elsewhere
		}
		select {
		case <-done:
			return
		case <-changed:
		}
	}
}

// Pending returns the question that waits, if one does.
func (r *Asker) Pending() (Question, bool) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.pending == nil || r.pending.State != Pending {
		return Question{}, false
	}
	return *r.pending, true
}

// grant allows the tool of a call until the end. queue.mu is held.
func (r *Asker) grant(c Call, question string) {
	known := r.granted[c.key()]
	for _, reason := range c.Reasons {
		if !slices.Contains(known.reasons, reason) {
			known.reasons = append(known.reasons, reason)
		}
	}
	known.question = question
	r.granted[c.key()] = known
}

// Granted returns the ID of the question by which the user allowed a call earlier: its tool for the
// rest of the run, or something that it is part of for the connection. The user knew of all reasons
// to be asked then: a new one is another question. So is another entry of the server, or another
// definition of the tool. "" is of none.
func (r *Asker) Granted(c Call) (question string) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.stopped != nil {
		return ""
	}
	known := r.granted[c.key()]
	unknown := func(reason string) bool { return !slices.Contains(known.reasons, reason) }
	if known.question != "" && !slices.ContainsFunc(c.Reasons, unknown) {
		return known.question
	}
	return r.o.Client.allows(c)
}

// Believed reports whether the user accepted the hint of a call.
func (r *Asker) Believed(c Call) bool {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return c.Hint != "" && r.believed[c.key()] == c.Hint
}

// AskBefore asks whether a run may have something before its code starts: packages, or
// hosts. Reasons say why it is asked.
func (r *Asker) AskBefore(ctx context.Context, subject string, reasons []string) error {
	_, err := r.askInTurn(ctx, &Question{Subject: subject, Reasons: reasons})
	return err
}

// AskForm asks the user what a server wants to know, and returns the answer.
func (r *Asker) AskForm(ctx context.Context, f Form) (Answer, error) {
	return r.askInTurn(ctx, &Question{Form: &f})
}

// askInTurn asks when no other question of the run waits.
func (r *Asker) askInTurn(ctx context.Context, q *Question) (_ Answer, err error) {
	defer contain.Error("asking the user", &err)
	if r.o.NoUser {
		return Answer{}, ErrNoUser
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.ask(ctx, q)
}

// ask freezes the run, puts a question and waits until it is decided. r.turn is held. If
// it panics, the run may be frozen for good or not at all, and is ended.
func (r *Asker) ask(ctx context.Context, q *Question) (Answer, error) {
	if err := r.whyStopped(); err != nil {
		return Answer{}, err
	}
	if err := r.queue.freeze(r.o.Client); err != nil {
		return Answer{}, err
	}
	defer r.queue.thaw(r.o.Client)
	defer contain.Undo(func() {
		r.withdraw(q)
		r.abort()
	})
	r.mu.Lock()
	hold, past := r.hold, r.past
	r.mu.Unlock()
	if hold != nil {
		contain.Point("consent: freezing")
		defer hold()()
	}
	contain.Point("consent: frozen")
	q.ID, q.Run, q.Client, q.Command, q.State, q.run, q.decided = newID(), r.o.ID, r.o.Client.Name, r.o.Command, Pending, r, make(chan struct{})
	if past != nil {
		q.CallsBefore, q.Effects, q.MoreEffects = past()
	}
	q.AskedAt = time.Now()
	q.ExpiresAt = q.AskedAt.Add(r.o.Timeout)
	if !r.put(q) {
		return Answer{}, context.Canceled
	}
	decided := r.await(ctx, q)
	contain.Point("consent: decided")
	err := decided.err()
	if decided.State == Stopped || decided.State == Expired {
		r.stop(err)
		r.o.Stop(err)
	}
	return decided.Answer, err
}

// stop notes that nothing more of the run is asked, and takes back what was allowed.
func (r *Asker) stop(why error) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	r.stopped = why
	clear(r.granted)
}

func (r *Asker) whyStopped() error {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.stopped
}

// errInternal ends a run whose question panicked: its state is unknown.
var errInternal = fmt.Errorf("%w while the user was asked; the log has the details", contain.ErrInternal)

// abort ends the run at once.
func (r *Asker) abort() {
	r.stop(errInternal)
	if r.o.Abort != nil {
		r.o.Abort(errInternal)
	} else {
		r.o.Stop(errInternal)
	}
}

// withdraw ends a question that nothing waits for any more.
func (r *Asker) withdraw(q *Question) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.pending == q {
		r.pending = nil
	}
	if q.State == Pending && r.queue.find(q.ID) == q {
		_ = r.queue.settle(q, Ended, Answer{})
	}
}

// put makes a question the one that waits, unless the run has ended.
func (r *Asker) put(q *Question) bool {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.ended {
		return false
	}
	r.pending, q.lasting = q, r.o.Client.mayAllow()
	r.queue.add(q)
	return true
}

// await waits until a question is decided, and returns a copy of it: it may be revoked.
func (r *Asker) await(ctx context.Context, q *Question) Question {
	expiry := time.NewTimer(time.Until(q.ExpiresAt))
	defer expiry.Stop()
	state := Pending
	select {
	case <-q.decided:
	case <-expiry.C:
		state = Expired
	case <-ctx.Done():
		state = Ended
	}
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if q.State == Pending {
		_ = r.queue.settle(q, state, Answer{})
	}
	r.pending = nil
	return *q
}

// err is what a decided question means for the run.
func (q *Question) err() error {
	switch q.State {
	case Approved, Answered, Revoked:
		return nil
	case Stopped:
		return q.Answer.stop()
	case Expired:
		return ErrExpired
	case Ended:
		return context.Canceled
	}
	return q.Answer.denial()
}
