// Package consent asks the user in the middle of a run, which is paused meanwhile.
//
// A [Queue] keeps the questions of all runs of one process, and an [Asker] asks them. The
// run is frozen from its question to the answer, and nothing of it is repeated. Who
// takes a question to the user (a form of the client, the next call of the model,
// `toolcell approvals`) is not known here: all call [Queue.Decide], and the first
// answer counts.
//
// It promises that nothing but a known choice of the question itself allows a call,
// and that what is shown, digested and sent are the same bytes. It cannot tell the
// user from a program that acts as the user (docs/security.md).
package consent

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Why a call is not allowed.
var (
	ErrDenied  = errors.New("denied by the user")
	ErrStopped = errors.New("the user stopped the run")
	ErrExpired = errors.New("no answer came in time")
	// ErrNoUser: no user can be asked. The policy says what holds then.
	ErrNoUser = errors.New("no user can be asked for approval")
)

// Errors of Decide.
var (
	ErrUnknown = errors.New("there is no such question")
	ErrDecided = errors.New("it was answered already")
)

// Options configure a Queue. The zero value works.
type Options struct {
	// Frozen bounds the runs that wait for answers at once; 8 if 0. A client may have half as
	// many in any case, so that other clients cannot keep it from being asked.
	Frozen int
	Log    *slog.Logger // nothing is logged if nil
}

// A Queue keeps the questions of the runs of one process. It is safe for concurrent
// use.
type Queue struct {
	o    Options
	self Client // of runs without one

	mu        sync.Mutex
	questions []*Question     // oldest first; decided ones are kept for a while
	frozen    map[*Client]int // runs
	changed   chan struct{}
}

// Bounds on the questions that are kept after their answer, and on their arguments in
// bytes: a question has those of up to a few hundred calls.
const (
	maxKept      = 100
	maxKeptBytes = 32 << 20
)

// NewQueue makes a queue.
func NewQueue(o Options) *Queue {
	o.Frozen = cmp.Or(o.Frozen, 8)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Queue{o: o, frozen: map[*Client]int{}, changed: make(chan struct{})}
}

// Changed returns a channel that is closed when a question comes or is decided.
func (d *Queue) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Questions returns the questions that wait, and the last ones that were decided,
// oldest first.
func (d *Queue) Questions() []Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Question, len(d.questions))
	for i, q := range d.questions {
		all[i] = q.copy()
	}
	return all
}

// Question returns one of them.
func (d *Queue) Question(id string) (Question, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.find(id); q != nil {
		return q.copy(), true
	}
	return Question{}, false
}

// Decide answers a question: ErrUnknown, ErrDecided, or an error that says which
// answers it has.
func (d *Queue) Decide(id string, a Answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.find(id)
	switch {
	case q == nil:
		return ErrUnknown
	case q.State != Pending:
		return ErrDecided
	case !time.Now().Before(q.ExpiresAt):
		_ = d.settle(q, Expired, Answer{})
		return ErrDecided
	}
	a, err := q.Check(a)
	if err != nil {
		return err
	}
	return d.settle(q, a.state(), a)
}

// Revoke takes back what the answer to a question allows for the rest of its run, or for the
// connection of its client.
func (d *Queue) Revoke(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.find(id)
	if q == nil {
		return ErrUnknown
	}
	if !q.allowsMore() {
		return errors.New("it does not allow anything now")
	}
	if q.Answer.Choice == ForRun {
		for _, c := range q.Calls {
			delete(q.run.granted, c.key())
		}
	}
	q.release()
	q.State = Revoked
	d.log(q)
	d.signal()
	return nil
}

// settle takes a question's last state, and lets its run go on. If that panics, the
// answer is a denial, and nothing of it is granted. d.mu is held.
func (d *Queue) settle(q *Question, s State, a Answer) (err error) {
	defer close(q.decided)
	defer contain.Recover("taking the user's answer", func(panicked error) {
		err = panicked
		q.State, q.Answer = Denied, Answer{}
		q.release()
		for _, c := range q.Calls {
			delete(q.run.granted, c.key())
			delete(q.run.believed, c.key())
		}
	})
	q.State, q.Answer, q.DecidedAt = s, a, time.Now()
	if s == Approved {
		for _, c := range q.Calls {
			switch a.Choice {
			case ForRun:
				q.run.grant(c, q.ID)
			case Believe:
				q.run.believed[c.key()] = c.Hint
			}
		}
	}
	if s == Approved && a.Choice.LastsForConnection() {
		d.grantForConnection(q)
	}
	contain.Point("consent: settling")
	d.dropOld()
	d.log(q)
	d.signal()
	return nil
}

// log records who answered what, and when: in a line for each call. d.mu is held, so that
// answers are recorded in their order.
func (d *Queue) log(q *Question) {
	q.record()
	log := d.o.Log.With("by", q.Answer.By, "choice", cmp.Or(string(q.Answer.Choice), q.Answer.Action), "question", q.ID, "run", q.Run)
	if q.Answer.Remark != "" {
		log = log.With("pid", q.Answer.PID, "remark", q.Answer.Remark)
	}
	// Of a form without what the user has entered: that may be a password.
	switch shown := fmt.Sprintf("%x", sha256.Sum256([]byte(q.Text()))); {
	case q.Form != nil:
		log.Info("question decided", "state", string(q.State), "about", "input", "server", q.Form.Server, "tool", q.Form.Tool, "sha256", shown)
	case len(q.Calls) == 0:
		log.Info("question decided", "state", string(q.State), "about", q.Subject, "sha256", shown)
	}
	for place, c := range q.Calls {
		state := q.State
		if q.Answer.leavesOut(place) {
			state = Denied
		}
		log.Info("question decided", "state", string(state), "about", "call", "server", c.Server, "tool", c.Tool, "sha256", c.Digest())
	}
}

// record has the run record what was asked or answered.
func (q *Question) record() {
	if q.run != nil && q.run.o.Record != nil {
		q.run.o.Record(*q)
	}
}

// add keeps a new question. d.mu is held.
func (d *Queue) add(q *Question) {
	d.questions = append(d.questions, q)
	q.record()
	d.dropOld()
	d.signal()
}

// dropOld forgets decided questions beyond the bounds, the oldest first. Those that still hold stay:
// grantForConnection bounds them. d.mu is held.
func (d *Queue) dropOld() {
	n, size := 0, 0
	for _, q := range d.questions {
		if !q.holds() {
			n, size = n+1, size+q.keptBytes()
		}
	}
	d.questions = slices.DeleteFunc(d.questions, func(q *Question) bool {
		if q.State == Pending || n <= maxKept && size <= maxKeptBytes || q.holds() {
			return false
		}
		n, size = n-1, size-q.keptBytes()
		return true
	})
}

// find returns a question, or nil. d.mu is held.
func (d *Queue) find(id string) *Question {
	i := slices.IndexFunc(d.questions, func(q *Question) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return d.questions[i]
}

// signal tells those who wait for a change. d.mu is held.
func (d *Queue) signal() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// freeze counts a run of a client as frozen, unless there are too many.
func (d *Queue) freeze(client *Client) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, own := 0, d.frozen[client]
	for _, n := range d.frozen {
		all += n
	}
	if all >= d.o.Frozen && own >= max(1, d.o.Frozen/2) {
		return fmt.Errorf("it needs the user's approval, and %s of this client wait for answers already, which is the most: tell the user to answer them with `toolcell approvals`, then run this again", text.Plural(own, "run"))
	}
	d.frozen[client]++
	return nil
}

func (d *Queue) thaw(client *Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen[client]--; d.frozen[client] == 0 {
		delete(d.frozen, client)
	}
}

// idForm is what the ID of a question looks like: 130 random bits.
var idForm = text.Pattern(`^` + idStart + `[A-Z2-7]{26}$`)

const idStart = "ask-"

func newID() string { return idStart + rand.Text() }

// IsID reports whether a text has the form of a question's ID.
func IsID(s string) bool { return idForm().MatchString(s) }

// MeansID reports whether a text may be an ID that was not copied as it is.
func MeansID(s string) bool { return strings.HasPrefix(strings.ToLower(strings.TrimSpace(s)), idStart) }
