package mcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
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

// acquire returns the live session, starting the server if it must. release
// gives it back; until then it is not taken for idle.
func (u *upstream) acquire(ctx context.Context) (s *transport.Session, release func(), err error) {
	for range 4 { // it may crash before our turn comes, but not forever
		s, wait, err := u.take()
		switch {
		case err != nil:
			return nil, nil, err
		case wait == nil:
			return s, sync.OnceFunc(contain.Func("giving back the session of a server", func() { u.release(s) })), nil
		}
		if err := wait(ctx); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("server %q ends as soon as it is started", u.server.Name)
}

// take returns the live session and counts a call in it. If there is none, the caller must
// call wait, without the lock, and try again.
func (u *upstream) take() (_ *transport.Session, wait func(context.Context) error, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer contain.Recover("taking the session of a server", func(panicked error) {
		err = panicked
		u.lose(panicked)
	})
	contain.Point("upstream: locked")
	s := u.live // not a named result: a return would change it for wait
	pause := u.backoff.pause(time.Now())
	switch {
	case u.closed != nil:
		return nil, nil, u.refusal()
	case s != nil && s.Broken():
		return nil, func(context.Context) error { _ = u.discard(s); return nil }, nil
	case s != nil && u.calls == 0 && !s.Suits(u.proxy.elicitsNow()):
		return nil, func(context.Context) error { u.expire(s); return nil }, nil // it was told otherwise of the client
	case s != nil:
		u.calls++
		u.stopTimer()
		return s, nil, nil
	case pause > 0 && !u.starting:
		failure := u.failure
		return nil, func(ctx context.Context) error { return waitBackoff(ctx, u, pause, failure) }, nil
	}
	start := u.share("start", u.start)
	return nil, func(ctx context.Context) error { return u.awaitStart(ctx, start) }, nil
}

// lose drops the session after a panic with u.mu held: its state may be inconsistent.
func (u *upstream) lose(panicked error) {
	u.starting, u.failure, u.failedAt = false, panicked, time.Now()
	if s := u.detach(); s != nil {
		u.proxy.finished.Go(contain.Func("closing a session", s.Close))
	}
}

// refusal returns why the upstream takes no more calls. u.mu is held.
func (u *upstream) refusal() error {
	if errors.Is(u.closed, errRetired) {
		return fmt.Errorf("server %q: %w", u.server.Name, u.closed)
	}
	return u.closed
}

func (u *upstream) release(s *transport.Session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer contain.Recover("giving back the session of a server", u.lose)
	if u.live != s {
		return // it ended during the call, and the count with it
	}
	u.calls--
	u.reportDrained()
	u.startTimer()
}

// share does work once for all callers that ask for the same key at the same time. The work
// continues when a caller leaves early. It does not begin if the upstream takes no more
// calls.
func (u *upstream) share(key string, work func() (any, error)) <-chan singleflight.Result {
	return u.shared.DoChan(key, func() (result any, err error) {
		defer contain.Error("starting or asking a server", &err) // singleflight would panic again, in a goroutine of its own
		if err := u.begin(key); err != nil {
			return nil, err
		}
		defer u.end(key)
		return work()
	})
}

// begin notes shared work, unless the upstream takes no more calls.
func (u *upstream) begin(key string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed != nil {
		return u.refusal()
	}
	u.proxy.finished.Add(1)
	u.underway[key] = false
	return nil
}

// end notes that shared work has ended.
func (u *upstream) end(key string) {
	defer u.proxy.finished.Done()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.underway, key)
}

// start starts the server.
func (u *upstream) start() (any, error) {
	u.mu.Lock()
	u.starting, u.since, u.place = true, time.Now(), ""
	u.mu.Unlock()
	var s *transport.Session
	var found transport.Handshake
	err := contain.Call("starting a server", func() (err error) {
		info := u.record.Info()
		d := *u.dialer
		d.StartTimeout = cmp.Or(u.server.StartTimeout, u.proxy.timeouts.Load().start)
		d.Launch = u.launcher()
		u.setPlace(whereOf(u.server, func(config.Server) bool { return d.Launch != nil }))
		s, found, err = d.Dial(u.proxy.ctx, transport.Handshake{Legacy: info.Legacy, Transport: info.Transport}, u.proxy.elicitsNow())
		return err
	})
	return u.finishStart(s, found, err)
}

// launcher returns what starts the server now; nil is this host.
func (u *upstream) launcher() stdio.Launcher {
	ask := u.proxy.options.Launch
	if ask == nil || u.server.URL != "" {
		return nil
	}
	launch, err := ask(u.server)
	if err == nil {
		return launch
	}
	return func(context.Context, config.Server) (*stdio.Launched, error) {
		return nil, &stdio.CommandError{Err: err}
	}
}

// finishStart records the outcome of a start.
func (u *upstream) finishStart(s *transport.Session, found transport.Handshake, err error) (*transport.Session, error) {
	if err == nil {
		u.record.Remember(func(i *catalog.ServerInfo) { i.Legacy, i.Transport, i.Failure = found.Legacy, found.Transport, "" })
	}
	refusal, err := u.takeIn(s, err)
	if refusal == nil && err == nil {
		return s, nil
	}
	if s != nil {
		s.Close()
	}
	if refusal != nil {
		return nil, refusal
	}
	u.rememberFailure(err)
	return nil, err
}

// takeIn makes a session the live one. It refuses one that is no longer wanted, and returns
// why the start failed.
func (u *upstream) takeIn(s *transport.Session, failure error) (refusal, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer contain.Recover("taking in a started server", func(panicked error) {
		refusal, err = nil, panicked
		u.lose(panicked)
	})
	u.starting = false
	switch {
	case u.closed != nil:
		return u.refusal(), nil
	case failure != nil:
		u.markDown(failure, 0)
		return nil, failure
	}
	u.live, u.calls, u.failure = s, 0, nil
	u.record.Outdated() // it may be another version of the server
	u.startTimer()
	u.proxy.finished.Go(func() {
		defer contain.Recover("supervising a server", func(error) { s.Close() })
		<-s.Down()
		u.exportSession(s)
		_ = u.discard(s)
		u.keepWritten(s)
	})
	return nil, nil
}

// maxFailure bounds the text of a failure in a record, in bytes.
const maxFailure = 1000

// rememberFailure keeps why the server cannot be used, for later processes to show.
// What the server wrote to stderr is not kept.
func (u *upstream) rememberFailure(err error) {
	failure := text.Bound(u.secrets.Error(WithoutOutput(err)).Error(), maxFailure)
	u.record.Remember(func(i *catalog.ServerInfo) { i.Failure = failure })
}

// markDown records why the server does not run; lived is how long it ran. u.mu is held.
func (u *upstream) markDown(err error, lived time.Duration) {
	u.failure, u.failedAt = err, time.Now()
	if !transport.Curable(err) {
		u.backoff.failed(u.failedAt, lived)
	}
}

// discard closes a broken session and returns how its link ended. The first call that finds
// it broken does so, and no later call gets it. A session that we ended was detached before,
// and counts as no failure.
func (u *upstream) discard(s *transport.Session) (how error) {
	s.Close()
	how = u.secrets.Error(s.Ended())
	u.mu.Lock()
	defer u.mu.Unlock()
	defer contain.Recover("discarding the session of a server", u.lose)
	if u.live == s {
		u.detach()
		if !s.Expired() {
			u.markDown(transport.ExitError(u.server.Name, how), s.Age())
		}
	}
	return how
}

// detach removes the live session and returns it. u.mu is held.
func (u *upstream) detach() *transport.Session {
	s := u.live
	u.live, u.calls = nil, 0
	u.stopTimer()
	u.reportDrained()
	return s
}

// reportDrained tells retire when no calls are left. u.mu is held.
func (u *upstream) reportDrained() {
	if u.calls == 0 && u.drained != nil {
		close(u.drained)
		u.drained = nil
	}
}

// startTimer starts the idle timer if no call is in flight. u.mu is held.
func (u *upstream) startTimer() {
	idle := u.proxy.timeouts.Load().idle
	if idle <= 0 || u.calls > 0 {
		return
	}
	s := u.live
	u.stopTimer()
	u.timer = time.AfterFunc(idle, contain.Func("ending an idle server", func() { u.expire(s) }))
}

func (u *upstream) stopTimer() {
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}

// expire ends a session that no call uses.
func (u *upstream) expire(s *transport.Session) {
	u.mu.Lock()
	if u.live != s || u.calls > 0 {
		u.mu.Unlock()
		return
	}
	u.detach()
	u.proxy.finished.Add(1)
	u.mu.Unlock()
	defer u.proxy.finished.Done()
	s.Close()
}

// retire refuses further calls with why, waits for the calls in flight, but not longer than
// within, and ends the server.
func (u *upstream) retire(why error, within time.Duration) {
	u.mu.Lock()
	u.closed = cmp.Or(u.closed, why)
	drained := make(chan struct{})
	u.drained = drained
	u.reportDrained()
	u.mu.Unlock()
	select {
	case <-drained:
	case <-time.After(within):
	case <-u.proxy.ctx.Done():
	}
	u.mu.Lock()
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

// failedJustNow returns why the server failed to start a moment ago, or nil.
func (u *upstream) failedJustNow() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live == nil && !u.starting && u.failure != nil && time.Since(u.failedAt) < failureHolds {
		return u.failure
	}
	return nil
}
