package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var errClosed = errors.New("the MCP servers are being shut down")

// upstream is one server over its life: started at first need, kept warm,
// released when idle, started again after it crashed.
type upstream struct {
	server   Server
	record   *serverRecord // what is known of it, whether it runs or not
	dialer   *dialer
	idle     time.Duration
	ctx      context.Context // of the proxy; ends starts in flight
	finished *sync.WaitGroup // of the proxy; every goroutine is in it

	mu       sync.Mutex
	live     *session // nil when it does not run
	starting *flight[*session]
	calls    int // in flight on live
	timer    *time.Timer
	legacy   bool // it takes only the older handshake
	failure  error
	failedAt time.Time
	closed   bool
}

// acquire returns the live session, starting the server if it must. release
// gives it back; until then it is not taken for idle.
func (u *upstream) acquire(ctx context.Context) (s *session, release func(), err error) {
	for range 4 { // it may crash before our turn comes, but not for ever
		u.mu.Lock()
		if u.closed {
			u.mu.Unlock()
			return nil, nil, errClosed
		}
		if s := u.live; s != nil && s.broken() {
			u.mu.Unlock()
			u.bury(s)
			continue
		}
		if s := u.live; s != nil {
			u.calls++
			u.stopTimer()
			u.mu.Unlock()
			return s, sync.OnceFunc(func() { u.release(s) }), nil
		}
		f := u.start()
		u.mu.Unlock()
		if _, err := f.wait(ctx); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("waiting for server %q to start: %w", u.server.Name, context.Cause(ctx))
			}
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("server %q ends as soon as it is started", u.server.Name)
}

func (u *upstream) release(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live != s {
		return // it ended during the call, and the count with it
	}
	u.calls--
	u.startTimer()
}

// start returns the start in flight, or begins one. u.mu is held.
func (u *upstream) start() *flight[*session] {
	if u.starting != nil {
		return u.starting
	}
	f := newFlight[*session]()
	u.starting = f
	legacy := u.legacy || u.record.memo().Legacy
	u.finished.Add(1)
	go func() {
		defer u.finished.Done()
		s, legacy, err := u.dialer.dial(u.ctx, legacy)
		f.land(u.started(s, legacy, err))
	}()
	return f
}

// started takes in the outcome of a start.
func (u *upstream) started(s *session, legacy bool, err error) (*session, error) {
	u.record.remember(func(m *memo) { m.Legacy = legacy })
	u.mu.Lock()
	u.starting = nil
	u.legacy = legacy
	if err == nil && !u.closed {
		u.live, u.calls, u.failure = s, 0, nil
		u.record.outdated() // it may be another version of the server
		u.startTimer()
		u.finished.Add(1)
		go u.attend(s)
		u.mu.Unlock()
		return s, nil
	}
	closed := u.closed
	if !closed {
		u.failure, u.failedAt = err, time.Now()
	}
	u.mu.Unlock()
	if s != nil {
		s.close()
	}
	if closed {
		return nil, errClosed
	}
	return nil, err
}

// attend waits until the session ends by itself and clears it away.
func (u *upstream) attend(s *session) {
	defer u.finished.Done()
	select {
	case <-s.proc.exited:
	case <-s.proc.read:
	}
	u.bury(s)
}

// bury clears a broken session away and returns how its process ended. Who
// finds it broken first does it, so that no later call is given it. A session
// that we ended was detached before and leaves no failure.
func (u *upstream) bury(s *session) (how string) {
	s.close()
	how = s.proc.ended()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live == s {
		u.detach()
		u.failure, u.failedAt = fmt.Errorf("server %q %s", u.server.Name, how), time.Now()
	}
	return how
}

// detach takes the live session out of use. u.mu is held.
func (u *upstream) detach() *session {
	s := u.live
	u.live, u.calls = nil, 0
	u.stopTimer()
	return s
}

// startTimer begins the idle time if nothing is in flight. u.mu is held.
func (u *upstream) startTimer() {
	if u.idle <= 0 || u.calls > 0 {
		return
	}
	s := u.live
	u.stopTimer()
	u.timer = time.AfterFunc(u.idle, func() { u.expire(s) })
}

func (u *upstream) stopTimer() {
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}

// expire ends a session that stayed idle.
func (u *upstream) expire(s *session) {
	u.mu.Lock()
	if u.live != s || u.calls > 0 {
		u.mu.Unlock()
		return
	}
	u.detach()
	u.finished.Add(1)
	u.mu.Unlock()
	defer u.finished.Done()
	s.close()
}

// close ends the server for good. Calls in flight fail.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = true
	s := u.detach()
	u.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// status reports the state in the words of ServerStatus.
func (u *upstream) status() (state string, failure error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.live != nil:
		state = "ready"
	case u.starting != nil:
		state = "starting"
	case u.failure != nil:
		state, failure = "failed", u.failure
	default:
		state = "idle"
	}
	return state, failure
}

// isLost reports whether err means that the connection broke, in contrast to
// an answer that is an error.
func isLost(err error) bool {
	for _, broken := range []error{mcp.ErrConnectionClosed, io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE, errMessageTooLong} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
