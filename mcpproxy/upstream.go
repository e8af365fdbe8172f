package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"golang.org/x/sync/singleflight"
)

var (
	errClosed = errors.New("the MCP servers are being shut down")
	// errRetired is met only by a call that looked its server up just before
	// the configuration changed.
	errRetired = errors.New("its entry was changed or removed just now; call again")
)

// upstream is one server as the configuration has it now. What runs is in its
// upstreamState, which a new configuration takes over if its entry starts the server
// in the same way.
type upstream struct {
	server   config.Server
	identity string // its Fingerprint
	*upstreamState
}

type entryKey struct{}

// OfEntry returns a context in which ReadResource, GetPrompt and the lists use a server only
// if its entry has this config.Server.Fingerprint: it may have changed while the user
// was asked.
func OfEntry(ctx context.Context, fingerprint string) context.Context {
	return context.WithValue(ctx, entryKey{}, fingerprint)
}

// checkEntry returns an error if the context is of another entry.
func (u *upstream) checkEntry(ctx context.Context) error {
	if of, ok := ctx.Value(entryKey{}).(string); ok && of != u.identity {
		return fmt.Errorf("server %q: its entry has changed since the user was asked; try it again", u.server.Name)
	}
	return nil
}

// acquire returns the live session, starting the server if it must. release
// gives it back; until then it is not taken for idle.
func (u *upstream) acquire(ctx context.Context) (s *transport.Session, release func(), err error) {
	for range 4 { // it may crash before our turn comes, but not forever
		u.mu.Lock()
		if u.closed != nil {
			defer u.mu.Unlock()
			return nil, nil, u.refusal()
		}
		if s := u.live; s != nil && s.Broken() {
			u.mu.Unlock()
			_ = u.discard(s)
			continue
		}
		if s := u.live; s != nil && u.calls == 0 && !s.Suits(u.elicits()) {
			u.detach() // it was told otherwise of the client
			u.finished.Add(1)
			u.mu.Unlock()
			s.Close()
			u.finished.Done()
			continue
		}
		if s := u.live; s != nil {
			u.calls++
			u.stopTimer()
			u.mu.Unlock()
			return s, sync.OnceFunc(func() { u.release(s) }), nil
		}
		if pause := u.backoff.pause(time.Now()); pause > 0 && !u.starting {
			failure := u.failure
			u.mu.Unlock()
			if err := waitBackoff(ctx, u, pause, failure); err != nil {
				return nil, nil, err
			}
			continue
		}
		start := u.share("start", u.start)
		u.mu.Unlock()
		if err := u.awaitStart(ctx, start); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("server %q ends as soon as it is started", u.server.Name)
}

// refusal says why it takes no more calls. u.mu is held.
func (u *upstream) refusal() error {
	if errors.Is(u.closed, errRetired) {
		return fmt.Errorf("server %q: %w", u.server.Name, u.closed)
	}
	return u.closed
}

func (u *upstream) release(s *transport.Session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live != s {
		return // it ended during the call, and the count with it
	}
	u.calls--
	if u.calls == 0 && u.drained != nil {
		close(u.drained)
		u.drained = nil
	}
	u.startTimer()
}

// share does work once for all callers that want it at the same time, by its key.
// The work continues when a caller leaves early. It is not begun when the
// upstream takes no more calls.
func (u *upstream) share(key string, work func() (any, error)) <-chan singleflight.Result {
	return u.shared.DoChan(key, func() (any, error) {
		u.mu.Lock()
		if u.closed != nil {
			defer u.mu.Unlock()
			return nil, u.refusal()
		}
		u.finished.Add(1)
		u.underway[key] = false
		u.mu.Unlock()
		defer func() {
			u.mu.Lock()
			delete(u.underway, key)
			u.mu.Unlock()
			u.finished.Done()
		}()
		return work()
	})
}

// start starts the server.
func (u *upstream) start() (any, error) {
	u.mu.Lock()
	u.starting, u.since = true, time.Now()
	u.mu.Unlock()
	info := u.record.Info()
	return u.finishStart(u.dialer.Dial(u.ctx, transport.Handshake{Legacy: info.Legacy, Transport: info.Transport}, u.elicits()))
}

// finishStart takes in the outcome of a start.
func (u *upstream) finishStart(s *transport.Session, found transport.Handshake, err error) (*transport.Session, error) {
	if err == nil {
		u.record.Remember(func(i *catalog.ServerInfo) { i.Legacy, i.Transport, i.Failure = found.Legacy, found.Transport, "" })
	}
	u.mu.Lock()
	u.starting = false
	if err == nil && u.closed == nil {
		u.live, u.calls, u.failure = s, 0, nil
		u.record.Outdated() // it may be another version of the server
		u.startTimer()
		u.finished.Add(1)
		go u.supervise(s)
		u.mu.Unlock()
		return s, nil
	}
	refusal := error(nil)
	if u.closed != nil {
		refusal = u.refusal()
	} else {
		u.markDown(err, 0)
	}
	u.mu.Unlock()
	if s != nil {
		s.Close()
	}
	if refusal != nil {
		return nil, refusal
	}
	u.rememberFailure(err)
	return nil, err
}

// maxFailure bounds the text of a failure in a record, in bytes.
const maxFailure = 1000

// rememberFailure keeps why the server cannot be used, for later processes to show.
// What the server wrote to stderr is not kept.
func (u *upstream) rememberFailure(err error) {
	failure := text.Bound(u.secrets.Error(WithoutOutput(err)).Error(), maxFailure)
	u.record.Remember(func(i *catalog.ServerInfo) { i.Failure = failure })
}

// markDown records why the server does not run, and how long it lived. u.mu is held.
func (u *upstream) markDown(err error, lived time.Duration) {
	u.failure, u.failedAt = err, time.Now()
	if !transport.Curable(err) {
		u.backoff.failed(u.failedAt, lived)
	}
}

// supervise waits until the session ends, and discards it.
func (u *upstream) supervise(s *transport.Session) {
	defer u.finished.Done()
	<-s.Down()
	_ = u.discard(s)
}

// discard closes a broken session and returns how its link ended. Whichever call
// finds it broken first does so, and no later call gets it. A session that we ended
// was detached before and leaves no failure.
func (u *upstream) discard(s *transport.Session) (how error) {
	s.Close()
	how = u.secrets.Error(s.Ended())
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live == s {
		u.detach()
		if !s.Expired() {
			u.markDown(transport.ExitError(u.server.Name, how), s.Age())
		}
	}
	return how
}

// detach takes the live session out of use. u.mu is held.
func (u *upstream) detach() *transport.Session {
	s := u.live
	u.live, u.calls = nil, 0
	u.stopTimer()
	if u.drained != nil {
		close(u.drained)
		u.drained = nil
	}
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
func (u *upstream) expire(s *transport.Session) {
	u.mu.Lock()
	if u.live != s || u.calls > 0 {
		u.mu.Unlock()
		return
	}
	u.detach()
	u.finished.Add(1)
	u.mu.Unlock()
	defer u.finished.Done()
	s.Close()
}

// close ends the server for good. Calls in flight fail.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = errClosed
	s := u.detach()
	u.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// retire takes no more calls, and ends the server when those in flight are
// done or their time is up.
func (u *upstream) retire(within time.Duration) {
	u.mu.Lock()
	if u.closed == nil {
		u.closed = errRetired
	}
	drained := make(chan struct{})
	if u.live != nil && u.calls > 0 {
		u.drained = drained
	} else {
		close(drained)
	}
	u.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	case <-u.ctx.Done():
	}
	u.mu.Lock()
	u.drained = nil
	s := u.detach()
	u.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// status reports the state in the words of ServerStatus.
func (u *upstream) status() (state string, failure error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.live != nil:
		state = "ready"
	case u.starting:
		state = config.StatusStarting
	case u.failure != nil:
		state, failure = config.StatusFailed, u.failure
	default:
		state = "idle"
		if earlier := u.record.Info().Failure; earlier != "" {
			state, failure = "failed", errors.New(earlier)
		}
	}
	return state, failure
}

// failedJustNow returns why the server could not be started lately, or nil.
func (u *upstream) failedJustNow() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live == nil && !u.starting && u.failure != nil && time.Since(u.failedAt) < failureHolds {
		return u.failure
	}
	return nil
}
