package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// These are the values of Result.Session.
const (
	sessionNew       = "new"
	sessionContinued = "continued"
	sessionEnded     = "ended" // with this run
)

// sessions are the sandboxes kept between runs, by name.
type sessions struct {
	life  context.Context // of the server
	o     Options
	exits *exitReasons

	mu     sync.Mutex
	live   map[string]*session
	ending sync.WaitGroup // sandboxes that are being let go
}

// A session keeps a sandbox under a name. Runs without a session get an unnamed
// one of their own, which no other call finds.
type session struct {
	name string
	turn chan struct{} // has room for one: the active run
	old  bool          // interpreter has run code before

	// They are nil before the first run and after the end. Only the call that has the
	// turn may use them.
	interpreter *interpreter
	private     []string      // what was read from private servers by then: it may be in there
	idle        time.Duration // after which it ends

	keeping atomic.Pointer[gate.Keeping] // what the record may keep of what its runs had by then; nil is all

	// The fields below are guarded by sessions.mu.
	calls int // that have the turn or wait for it
	used  time.Time
	timer *time.Timer // ends it, when no call has it
}

func newSessions(life context.Context, o Options) *sessions {
	return &sessions{life: life, o: o, exits: &exitReasons{dir: o.SessionsDir, log: o.Log}, live: map[string]*session{}}
}

// acquire returns the session of a name once no other call is at work in it, in
// the order in which the calls came. It has to be released.
func (ss *sessions) acquire(ctx context.Context, name string, timeout time.Duration) (*session, error) {
	if name == "" {
		return &session{}, nil
	}
	sess, err := ss.join(name)
	if err != nil {
		return nil, withStatus(StatusValidation, err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case sess.turn <- struct{}{}:
		return sess, nil
	case <-ctx.Done():
		err = cancelled(ctx, "while it waited for the session")
	case <-timer.C:
		err = withStatus(StatusTimeout, fmt.Errorf("session %q is at work on another call, for longer than the %s that this one may wait; its code has not run", name, seconds(timeout)))
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.leave(sess)
	return nil, err
}

// keepingOf is what the record may keep of what a session has by now.
func (ss *sessions) keepingOf(name string) (k gate.Keeping) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if sess := ss.live[name]; sess != nil {
		k = sess.keepingNow()
	}
	return k
}

func (s *session) keepingNow() (k gate.Keeping) {
	if kept := s.keeping.Load(); kept != nil {
		k = *kept
	}
	return k
}

// join adds a call to a session. A missing session is created, if necessary in
// place of an idle one.
func (ss *sessions) join(name string) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	sess := ss.live[name]
	if sess == nil {
		if err := ss.makeRoom(name); err != nil {
			return nil, err
		}
		sess = &session{name: name, turn: make(chan struct{}, 1)}
		ss.live[name] = sess
	}
	sess.calls++
	if sess.timer != nil {
		sess.timer.Stop()
	}
	return sess, nil
}

// makeRoom ends the session that has been idle longest if the limit is reached.
func (ss *sessions) makeRoom(name string) error {
	if ss.o.Sessions <= 0 {
		return errors.New("sessions are switched off here; leave session out")
	}
	if len(ss.live) < ss.o.Sessions {
		return nil
	}
	var oldest *session
	for _, sess := range ss.live {
		if sess.calls == 0 && (oldest == nil || sess.used.Before(oldest.used)) {
			oldest = sess
		}
	}
	if oldest == nil {
		return fmt.Errorf("session %q cannot begin: all %d sessions that may be kept are at work; wait for one, or leave session out", name, len(ss.live))
	}
	oldest.timer.Stop()
	ss.discard(oldest, fmt.Sprintf("another one needed its place, and %d are kept at most", ss.o.Sessions))
	return nil
}

// release ends the turn. An interpreter that is not kept ends.
func (ss *sessions) release(sess *session) {
	if sess.name == "" {
		if sess.interpreter != nil {
			sess.interpreter.end(errors.New("the run has ended"))
		}
		return
	}
	defer func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		<-sess.turn
		ss.leave(sess)
	}()
	if ss.isLast(sess) {
		// leave finds it done: others need not wait for it
		if err := contain.Call("freezing a session", func() error { sess.interpreter.freeze(); return nil }); err != nil {
			ss.throwAway(sess)
		}
	}
}

// throwAway ends the interpreter of a session that a call has, whose run has panicked: it
// is not known what it has left.
func (ss *sessions) throwAway(sess *session) {
	if sess.interpreter != nil {
		ss.lose(sess, "an internal error in toolcell ended it; the log has the details")
	}
}

// isLast reports whether a session has an interpreter, and no call but that which has
// the turn.
func (ss *sessions) isLast(sess *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return sess.calls == 1 && sess.interpreter != nil
}

// leave removes a call from a session. If no call is left, the session is frozen, or
// forgotten if it has no interpreter.
func (ss *sessions) leave(sess *session) {
	sess.calls--
	switch {
	case sess.calls > 0:
	case sess.interpreter == nil:
		delete(ss.live, sess.name)
	default:
		// Processes that earlier runs left must not compete with the user's programs.
		if err := contain.Call("freezing a session", func() error { sess.interpreter.freeze(); return nil }); err != nil {
			ss.discard(sess, err.Error())
			return
		}
		used := time.Now()
		sess.used = used
		idle := cmp.Or(sess.idle, ss.o.SessionIdle)
		sess.timer = time.AfterFunc(idle, func() {
			defer contain.Recover("ending an idle session", nil)
			ss.endIdle(sess, func() bool { return sess.used.Equal(used) }, "no call came for "+text.Duration(idle))
		})
	}
}

// endIdle ends a session without calls, if it has not been replaced meanwhile.
func (ss *sessions) endIdle(sess *session, meant func() bool, why string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.life.Err() == nil && sess.calls == 0 && ss.live[sess.name] == sess && meant() {
		ss.discard(sess, why)
	}
}

// isLive reports whether there is a session of that name that has variables or is
// about to have some.
func (ss *sessions) isLive(name string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.live[name] != nil
}

// discard removes a session that no call has, and ends its interpreter in the
// background.
func (ss *sessions) discard(sess *session, why string) {
	delete(ss.live, sess.name)
	ss.exits.add(sess.name, why)
	in := sess.interpreter
	sess.interpreter = nil
	ss.ending.Go(contain.Func("ending a session", func() { in.end(errors.New(why)) }))
}

// sandboxEnded is called when a sandbox has ended, which may be between two runs.
func (ss *sessions) sandboxEnded(sess *session, in *interpreter) {
	if sess.name != "" {
		ss.endIdle(sess, func() bool { return sess.interpreter == in }, ss.whyEnded(in))
	}
}

// whyEnded describes why a sandbox has ended by itself.
func (ss *sessions) whyEnded(in *interpreter) string {
	switch {
	case in.exit.OOM:
		return fmt.Sprintf("it needed more than the limit of %s of memory", text.Size(in.limits.Memory))
	case in.err != nil:
		return text.Bound(in.err.Error(), 300)
	}
	return describeExit(in.exit.Code)
}

// isAlive reports whether a session has variables. The call has its turn.
func (s *session) isAlive() bool {
	if s.interpreter == nil {
		return false
	}
	select {
	case <-s.interpreter.ended:
		return false
	default:
		return true
	}
}

// resume returns the interpreter of a session, if it has one.
func (ss *sessions) resume(sess *session) *interpreter {
	if sess.interpreter == nil {
		return nil
	}
	if !sess.isAlive() {
		ss.lose(sess, ss.whyEnded(sess.interpreter))
		return nil
	}
	sess.interpreter.thaw()
	sess.old = true
	return sess.interpreter
}

// lose ends the interpreter of a session that a call has.
func (ss *sessions) lose(sess *session, why string) {
	in := sess.interpreter
	sess.interpreter, sess.private, sess.old = nil, nil, false
	sess.keeping.Store(nil)
	in.end(errors.New(why))
	if sess.name != "" && ss.life.Err() == nil { // otherwise the server is closing
		ss.exits.add(sess.name, why)
	}
}

// A sessionNews is the part of a run's result that concerns its session.
type sessionNews struct {
	state string // as Result.Session
	notes []string
}

// begin reports whether a run begins a session, and how an earlier one of that
// name ended.
func (ss *sessions) begin(sess *session) (news sessionNews) {
	switch {
	case sess.name == "":
		return news
	case sess.old:
		news.state = sessionContinued
		return news
	}
	news.state = sessionNew
	if why := ss.exits.why(sess.name); why != "" {
		news.notes = append(news.notes, fmt.Sprintf("session %q was ended: %s; this is a new one, without its variables and files", sess.name, why))
	}
	ss.exits.keep(sess.name, serverEnded)
	return news
}

// endRun keeps the interpreter for the next run, or reports that the session
// has ended with this one.
func (ss *sessions) endRun(sess *session, r *Result, e ending) (news sessionNews) {
	if sess.name == "" {
		return news
	}
	if e.done.Kept {
		sess.interpreter.pipes.Listen()
		switch {
		case errors.Is(e.why, errStoppedAsRun):
			news.notes = append(news.notes, keptNote("the run was stopped", sess.name))
		case stoppedByUser(e.why):
			news.notes = append(news.notes, keptNote("the call that waited was not made", sess.name))
		case e.denied && r.Status != StatusSuccess:
			news.notes = append(news.notes, keptNote("what the user denied was not done", sess.name))
		}
		return news
	}
	why, byCode := ss.whyOver(sess, r, e)
	ss.lose(sess, why)
	news.state = sessionEnded
	if !byCode {
		news.notes = append(news.notes, fmt.Sprintf("this ended session %q: its variables and files are gone", sess.name))
	}
	return news
}

// whyOver says why a session has ended with a run, and whether its code wanted
// that.
func (ss *sessions) whyOver(sess *session, r *Result, e ending) (why string, byCode bool) {
	switch {
	case r.Status == StatusTimeout:
		return fmt.Sprintf("a run was stopped after %s", seconds(time.Duration(r.TimeoutSeconds)*time.Second)), false
	case r.Status == StatusMemory:
		return fmt.Sprintf("a run needed more than the limit of %s of memory", text.Size(sess.interpreter.limits.Memory)), false
	case r.Status == StatusCancelled && stoppedByUser(e.why):
		return fmt.Sprintf("%s, and its code did not end within %s", e.why, seconds(stopTimeout)), false
	case r.Status == StatusCancelled:
		return "a run was cancelled", false
	case r.Status == StatusSandbox:
		return "its sandbox failed", false
	case errors.Is(e.why, runner.ErrProtocol):
		return "a run broke the connection to the host", false
	case e.done.Reported && e.exit.Signal == 0:
		return "the code ended it", true
	}
	return describeExit(e.exit.Code), false
}

// close releases the sandboxes, which have ended with the server.
func (ss *sessions) close() {
	ss.ending.Wait()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, sess := range ss.live {
		if sess.timer != nil {
			sess.timer.Stop()
		}
		if sess.interpreter != nil {
			sess.interpreter.end(context.Canceled)
		}
	}
	clear(ss.live)
	ss.exits.close()
}
