package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// What Result.Session says.
const (
	sessionNew       = "new"
	sessionContinued = "continued"
	sessionEnded     = "ended" // with this run
)

// sessions are the sandboxes that are kept between runs, by name.
type sessions struct {
	life context.Context // of the server
	o    Options
	gone *goneBook

	mu     sync.Mutex
	live   map[string]*session
	ending sync.WaitGroup // sandboxes that are being let go
}

// A session is a name for which a sandbox is kept. Runs that name none have
// one of their own, without a name, that nobody else finds.
type session struct {
	name string
	turn chan struct{} // has room for one: the run that goes on
	box  *box          // nil if there is none yet, or no more; of whoever has the turn
	old  bool          // box has been used

	// Guarded by sessions.mu.
	calls int // that have the turn or wait for it
	used  time.Time
	timer *time.Timer // ends it, when no call has it
}

// Why a call could not enter a session.
var (
	errTurnCancelled = errors.New("the call was cancelled while it waited for the session")
	errTurnTimeout   = errors.New("is at work on another call")
)

func newSessions(life context.Context, o Options) *sessions {
	return &sessions{life: life, o: o, gone: &goneBook{dir: o.SessionsDir, log: o.Log}, live: map[string]*session{}}
}

// enter gives the session of a name once no other call is at work in it, in
// the order in which they came. It has to be left.
func (a *sessions) enter(ctx context.Context, name string, patience time.Duration) (*session, error) {
	if name == "" {
		return &session{}, nil
	}
	sess, err := a.find(name)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case sess.turn <- struct{}{}:
		return sess, nil
	case <-ctx.Done():
		err = errTurnCancelled
	case <-timeout.C:
		err = fmt.Errorf("session %q %w, for longer than the %s that this one may wait; its code has not run", name, errTurnTimeout, seconds(patience))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(sess)
	return nil, err
}

// waitingStatus is the status of a call that enter has refused.
func waitingStatus(err error) string {
	switch {
	case errors.Is(err, errTurnCancelled):
		return StatusCancelled
	case errors.Is(err, errTurnTimeout):
		return StatusTimeout
	}
	return StatusValidation
}

// find gives the session of a name, in the place of another one if need be.
func (a *sessions) find(name string) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sess := a.live[name]
	if sess == nil {
		if err := a.makeRoom(name); err != nil {
			return nil, err
		}
		sess = &session{name: name, turn: make(chan struct{}, 1)}
		a.live[name] = sess
	}
	sess.calls++
	if sess.timer != nil {
		sess.timer.Stop()
	}
	return sess, nil
}

// makeRoom ends the session that has been idle for longest if there are as
// many as there may be.
func (a *sessions) makeRoom(name string) error {
	if a.o.Sessions <= 0 {
		return errors.New("sessions are switched off here; leave session out")
	}
	if len(a.live) < a.o.Sessions {
		return nil
	}
	var oldest *session
	for _, sess := range a.live {
		if sess.calls == 0 && (oldest == nil || sess.used.Before(oldest.used)) {
			oldest = sess
		}
	}
	if oldest == nil {
		return fmt.Errorf("session %q cannot begin: all %d sessions that may be kept are at work; wait for one, or leave session out", name, len(a.live))
	}
	oldest.timer.Stop()
	a.bury(oldest, fmt.Sprintf("another one needed its place, and %d are kept at most", a.o.Sessions))
	return nil
}

// leave ends the turn. A sandbox that is not kept ends.
func (a *sessions) leave(sess *session) {
	if sess.name == "" {
		if sess.box != nil {
			sess.box.end(errors.New("the run has ended"))
		}
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	<-sess.turn
	a.release(sess)
}

// release notes that a call has no more to do with a session.
func (a *sessions) release(sess *session) {
	sess.calls--
	switch {
	case sess.calls > 0:
	case sess.box == nil:
		delete(a.live, sess.name)
	default:
		used := time.Now()
		sess.used = used
		sess.timer = time.AfterFunc(a.o.SessionIdle, func() {
			a.endIdle(sess, func() bool { return sess.used.Equal(used) }, "no call came for "+a.o.SessionIdle.String())
		})
	}
}

// endIdle ends a session that no call is at work in, if it still is the one
// that is meant.
func (a *sessions) endIdle(sess *session, meant func() bool, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.Err() == nil && sess.calls == 0 && a.live[sess.name] == sess && meant() {
		a.bury(sess, why)
	}
}

// bury removes a session that no call has, and ends its sandbox beside
// everything else.
func (a *sessions) bury(sess *session, why string) {
	delete(a.live, sess.name)
	a.gone.note(sess.name, why)
	b := sess.box
	sess.box = nil
	a.ending.Go(func() {
		b.end(errors.New(why))
	})
}

// noticeEnd is called when a sandbox has ended, which it may between two runs.
func (a *sessions) noticeEnd(sess *session, b *box) {
	if sess.name != "" {
		a.endIdle(sess, func() bool { return sess.box == b }, a.whyEnded(b))
	}
}

// whyEnded says why a sandbox has ended of which nobody wanted that.
func (a *sessions) whyEnded(b *box) string {
	switch {
	case b.exit.OOM:
		return fmt.Sprintf("it needed more than the limit of %s of memory", mebibytes(a.o.Limits.Memory))
	case b.err != nil:
		return text.Bound(b.err.Error(), 300)
	}
	return describeExit(b.exit.Code)
}

// resume gives the sandbox of a session, if it has one.
func (a *sessions) resume(sess *session) *box {
	if sess.box == nil {
		return nil
	}
	select {
	case <-sess.box.ended:
		a.lose(sess, a.whyEnded(sess.box))
		return nil
	default:
	}
	sess.old = true
	return sess.box
}

// lose notes that the session of a call has no sandbox any more.
func (a *sessions) lose(sess *session, why string) {
	sess.box.end(errors.New(why))
	sess.box, sess.old = nil, false
	if a.life.Err() == nil { // else it is the server that ends
		a.gone.note(sess.name, why)
	}
}

// tellBefore says in the result of a run what became of an earlier session of
// the name.
func (a *sessions) tellBefore(sess *session, r *Result) {
	if sess.name == "" {
		return
	}
	r.Session = sessionContinued
	if sess.old {
		return
	}
	r.Session = sessionNew
	if why := a.gone.take(sess.name); why != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("session %q was ended: %s; this is a new one, without its variables and files", sess.name, why))
	}
	a.gone.began(sess.name)
}

// tellAfter keeps the sandbox for the next run, or says that the session has
// ended with this one.
func (a *sessions) tellAfter(sess *session, r *Result, out outcome) {
	if sess.name == "" {
		return
	}
	if out.kept {
		sess.box.wires.Listen()
		return
	}
	why, byCode := a.whyOver(r, out)
	a.lose(sess, why)
	r.Session = sessionEnded
	if !byCode {
		r.Notes = append(r.Notes, fmt.Sprintf("this ended session %q: its variables and files are gone", sess.name))
	}
}

// whyOver says why a session has ended with a run, and whether its code wanted
// that.
func (a *sessions) whyOver(r *Result, out outcome) (why string, byCode bool) {
	done := out.talk.doneFrame()
	switch {
	case r.Status == StatusTimeout:
		return fmt.Sprintf("a run was stopped after %s", seconds(time.Duration(r.TimeoutSeconds)*time.Second)), false
	case r.Status == StatusMemory:
		return fmt.Sprintf("a run needed more than the limit of %s of memory", mebibytes(a.o.Limits.Memory)), false
	case r.Status == StatusCancelled:
		return "a run was cancelled", false
	case r.Status == StatusSandbox:
		return "its sandbox failed", false
	case out.talk.broken():
		return "a run broke the connection to the host", false
	case done != nil && !done.Kept && out.exit.Signal == 0:
		return "the code ended it", true
	}
	return describeExit(out.exit.Code), false
}

// close lets go of the sandboxes, which have ended with the server.
func (a *sessions) close() {
	a.ending.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sess := range a.live {
		if sess.timer != nil {
			sess.timer.Stop()
		}
		if sess.box != nil {
			sess.box.end(context.Canceled)
		}
	}
	clear(a.live)
	a.gone.close()
}
