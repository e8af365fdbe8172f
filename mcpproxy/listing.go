package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	// changePatience is how long a caller waits for the tools of a server that
	// said they changed. After it the old ones have to do.
	changePatience = 2 * time.Second
	// changePause bounds how often a server can make us ask.
	changePause = time.Second
)

// known returns the tools: those in memory or on disk at once, though the
// server does not run, and else what it says when it is started.
func (u *upstream) known(ctx context.Context) (*toolList, error) {
	list, changed := u.record.tools()
	if list == nil {
		return u.learn(ctx)
	}
	if s := u.running(); changed && s != nil {
		if newer, err := u.record.await(ctx, u.asking(s), changePatience); err == nil {
			list = newer
		}
	}
	return list, nil
}

// learn asks the server, which is started if it must be.
func (u *upstream) learn(ctx context.Context) (*toolList, error) {
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return u.ask(ctx, s)
}

// current returns the tools of a running session. What is known is taken even
// if it may be out of date: the server is then asked beside the caller's work.
// fresh says that this is what it said just now.
func (u *upstream) current(ctx context.Context, s *transport.Session) (list *toolList, fresh bool, err error) {
	list, changed := u.record.tools()
	if list == nil {
		list, err = u.ask(ctx, s)
		return list, true, err
	}
	if changed {
		u.asking(s)
	}
	return list, false, nil
}

// running returns the live session, or nil.
func (u *upstream) running() *transport.Session {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.live
}

// isClosed reports whether no goroutine may be added any more. u.mu is held.
func (u *upstream) isClosed() bool { return u.closed != nil }

// ask asks a running server for its tools.
func (u *upstream) ask(ctx context.Context, s *transport.Session) (*toolList, error) {
	list, err := u.asking(s).wait(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("listing the tools of server %q: %w", u.server.Name, context.Cause(ctx))
	}
	return list, err
}

// asking joins the request under way, unless the tools changed after it went
// out, or makes one.
func (u *upstream) asking(s *transport.Session) *flight[*toolList] {
	r := u.record
	u.mu.Lock()
	defer u.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking != nil && r.askingAsOf == r.changes {
		return r.asking
	}
	f, asOf := newFlight[*toolList](), r.changes
	if u.isClosed() {
		f.land(nil, errClosed)
		return f
	}
	r.asking, r.askingAsOf = f, asOf
	u.finished.Go(func() {
		list, err := u.list(s, asOf)
		r.mu.Lock()
		if r.asking == f {
			r.asking = nil
		}
		r.mu.Unlock()
		f.land(list, err)
	})
	return f
}

// list gets the tools over the wire and keeps them.
func (u *upstream) list(s *transport.Session, asOf int) (*toolList, error) {
	ctx, cancel := context.WithTimeout(u.ctx, listWithin)
	defer cancel()
	d, err := listTools(ctx, s, u.log.With("server", u.server.Name))
	if err != nil {
		return nil, u.lost(s, err, fmt.Sprintf("listing the tools of server %q", u.server.Name), nil)
	}
	u.introduce(s)
	return u.record.put(d, asOf), nil
}

// introduce remembers what the server said of itself when it shook hands.
func (u *upstream) introduce(s *transport.Session) {
	said := s.InitializeResult()
	if said == nil {
		return
	}
	u.record.remember(func(m *memo) {
		m.Instructions = text.CutAfter(text.Clean(said.Instructions), maxInstructions)
		if info := said.ServerInfo; info != nil {
			m.Title, _ = text.SplitAt(text.Clean(info.Title), maxTitle)
			m.Release, _ = text.SplitAt(text.Clean(info.Version), maxTitle)
			m.About = text.Summary(text.Clean(info.Description))
		}
	})
}

const maxInstructions = 1000 // characters; the head of a record must hold them

// described returns the server with a description: the user's own, or what it
// says of itself.
func (u *upstream) described() config.Server {
	s := u.server
	if s.Description == "" {
		m := u.record.memo()
		for _, text := range []string{m.About, text.Summary(m.Instructions), m.Title} {
			if s.Description == "" {
				s.Description = text
			}
		}
	}
	return s
}

// invalidate is called when the server says that its tools changed. It is asked
// at once, but not each time when it says so thousands of times.
func (u *upstream) invalidate() {
	r := u.record
	u.mu.Lock()
	defer u.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if r.following || u.live == nil || u.isClosed() {
		return
	}
	r.following = true
	u.finished.Go(u.follow)
}

// follow asks the running server until its tools are those of its last change.
func (u *upstream) follow() {
	r := u.record
	for {
		var err error = errClosed
		if s := u.running(); s != nil {
			_, err = u.ask(u.ctx, s)
		}
		r.mu.Lock()
		r.following = err == nil && r.changes != r.asOf
		more := r.following
		r.mu.Unlock()
		if !more {
			return
		}
		pause(u.ctx, changePause)
	}
}

// study asks the server beside other work, when its turn comes. Callers share
// it, and it goes on when they have left. brief ends the server afterwards if it
// was started for this alone.
func (u *upstream) study(turns chan struct{}, delay time.Duration, brief bool) *flight[*toolList] {
	r := u.record
	u.mu.Lock()
	defer u.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.learning != nil {
		return r.learning
	}
	f := newFlight[*toolList]()
	if u.isClosed() {
		f.land(nil, errClosed)
		return f
	}
	r.learning = f
	u.finished.Go(func() {
		list, err := u.studied(turns, delay, brief)
		r.mu.Lock()
		r.learning = nil
		r.mu.Unlock()
		f.land(list, err)
	})
	return f
}

func (u *upstream) studied(turns chan struct{}, delay time.Duration, brief bool) (*toolList, error) {
	if !pause(u.ctx, delay) {
		return nil, errClosed
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-u.ctx.Done():
		return nil, errClosed
	}
	brief = brief && u.running() == nil
	list, err := u.learn(u.ctx)
	if s := u.running(); brief && s != nil {
		u.expire(s) // unless somebody uses it by now
	}
	return list, err
}

// pause waits, and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
