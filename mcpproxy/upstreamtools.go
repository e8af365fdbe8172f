package mcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

const (
	// changeTimeout is how long a caller waits for a new list after the server reported
	// a change. After it the caller gets the old list.
	changeTimeout = 2 * time.Second
	// changePause bounds how often a server can make us list its tools.
	changePause = time.Second
)

// tools returns the tools from memory or disk, even if the server does not run, or starts
// the server to list them.
func (u *upstream) tools(ctx context.Context) (*catalog.List, error) {
	list, changed := u.record.Tools()
	if list == nil {
		return u.startAndList(ctx)
	}
	if s := u.running(); changed && s != nil {
		key, listing := u.startListing(s)
		over, stop := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
		defer stop()
		if newer, err := u.await(ctx, key, listing, over.Done()); err == nil {
			list = newer
		}
	}
	return list, nil
}

// startAndList lists the tools of a server, which is started if it does not run.
func (u *upstream) startAndList(ctx context.Context) (*catalog.List, error) {
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return u.list(ctx, s)
}

// running returns the live session, or nil.
func (u *upstream) running() *transport.Session {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.live
}

// list asks a running server for its tools.
func (u *upstream) list(ctx context.Context, s *transport.Session) (*catalog.List, error) {
	_, listing := u.startListing(s)
	select {
	case done := <-listing:
		list, _ := done.Val.(*catalog.List)
		return list, done.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("listing the tools of server %q: %w", u.server.Name, context.Cause(ctx))
	}
}

// startListing joins a request in flight, unless the tools changed after it was sent, or
// sends one.
func (u *upstream) startListing(s *transport.Session) (key string, listing <-chan singleflight.Result) {
	asOf := u.record.ChangeCount()
	key = fmt.Sprintf("list %d", asOf)
	return key, u.share(key, func() (any, error) { return u.fetch(s, asOf) })
}

// listWithin bounds listing, over all pages.
const listWithin = 60 * time.Second

// fetch lists the tools over the wire and keeps them.
func (u *upstream) fetch(s *transport.Session, asOf int) (*catalog.List, error) {
	ctx, cancel := context.WithTimeoutCause(u.proxy.ctx, listWithin, noAnswer(listWithin))
	defer cancel()
	began := time.Now()
	d, partial, err := listTools(ctx, s, u.server.URL != "", u.proxy.options.Log.With("server", u.server.Name))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = s.Explain(u.explainError(s, err, fmt.Sprintf("listing the tools of server %q", u.server.Name), nil), began)
		if u.proxy.ctx.Err() == nil {
			u.rememberFailure(err)
		}
		return nil, err
	}
	u.pins.Record(d.Sent()) // before the tools can be called
	recordInfo(u.record, s)
	u.record.Remember(func(m *catalog.ServerInfo) {
		m.Partial = text.OneLine(u.secrets.Text(text.Clean(partial)), maxInfo)
	})
	return u.record.Put(d, asOf), nil
}

// resolve finds the tool in the kept list. A list that may be out of date is fetched again
// first if live is set, else in the background. Before resolve gives up it asks the server
// again: some change their tools without saying so.
func (u *upstream) resolve(ctx context.Context, s *transport.Session, tool string, live bool) (catalog.Tool, error) {
	list, outdated := u.record.Tools()
	kept := list != nil && !(outdated && live)
	if kept {
		if outdated {
			u.startListing(s)
		}
		if t, ok := list.Resolve(tool); ok {
			return t, nil
		}
		u.record.Outdated()
	}
	list, err := u.list(ctx, s)
	if err != nil {
		return catalog.Tool{}, err
	}
	if t, ok := list.Resolve(tool); ok {
		return t, nil
	}
	return catalog.Tool{}, u.missing(list, tool)
}

// missing is List.Missing, and says that there may be more tools than are known.
func (u *upstream) missing(list *catalog.List, tool string) error {
	err := list.Missing(u.server.Name, tool)
	if partial := u.record.Info().Partial; partial != "" {
		return fmt.Errorf("%w; not all of its tools are known: %s", err, partial)
	}
	return err
}

// errNotYet is the error of a list that is still being fetched.
var errNotYet = errors.New("it is still starting or has not answered yet; search again later")

// await waits for a list until over is closed. After one caller has waited in vain, the next
// ones do not wait for the same list again.
func (u *upstream) await(ctx context.Context, key string, listing <-chan singleflight.Result, over <-chan struct{}) (*catalog.List, error) {
	u.mu.Lock()
	if u.underway[key] {
		closed := make(chan struct{})
		close(closed)
		over = closed
	}
	u.mu.Unlock()
	select {
	case done := <-listing:
		list, _ := done.Val.(*catalog.List)
		return list, done.Err
	case <-ctx.Done():
		return nil, u.gaveUp(ctx)
	case <-over:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, running := u.underway[key]; running {
		u.underway[key] = true
	}
	return nil, errNotYet
}

// described returns the server with a description: the user's, or else its own.
func (u *upstream) described() config.Server {
	s, m := u.server, u.record.Info()
	s.Description = cmp.Or(s.Description, m.About, text.Summary(m.Instructions), m.Title)
	return s
}

// invalidate is called when the server says that its tools changed. It is asked
// at once, but not each time if it reports thousands of changes.
func (u *upstream) invalidate() {
	u.record.Outdated()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.relisting || u.live == nil || u.closed != nil {
		return
	}
	u.relisting = true
	u.proxy.finished.Go(u.relist)
}

// relist asks the running server until its tools are those of its last change.
func (u *upstream) relist() {
	defer contain.Recover("listing the tools of a server", func(error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.relisting = false
	})
	for {
		err := errClosed
		if s := u.running(); s != nil {
			_, err = u.list(u.proxy.ctx, s)
		}
		u.mu.Lock()
		_, changed := u.record.Tools()
		u.relisting = err == nil && changed
		more := u.relisting
		u.mu.Unlock()
		if !more {
			return
		}
		pause(u.proxy.ctx, changePause)
	}
}

// scheduleListing lists the tools in the background, when the turn comes. Callers share
// it, and it continues when they have left. brief ends the server afterwards if it was
// started for this alone.
func (u *upstream) scheduleListing(turns chan struct{}, delay time.Duration, brief bool) (key string, listing <-chan singleflight.Result) {
	key = "start and list"
	return key, u.share(key, func() (any, error) { return u.listInTurn(turns, delay, brief) })
}

// isOld reports whether it is time to list the tools again though nothing is known
// to have changed.
func (u *upstream) isOld() bool {
	u.mu.Lock()
	recent := time.Since(u.renewedAt) < renewRetry
	u.mu.Unlock()
	if recent || !u.record.OlderThan(renewAfter) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.renewedAt = time.Now()
	return true
}

func (u *upstream) listInTurn(turns chan struct{}, delay time.Duration, brief bool) (*catalog.List, error) {
	if !pause(u.proxy.ctx, delay) {
		return nil, errClosed
	}
	select {
	case turns <- struct{}{}:
		defer giveBack(turns)()
	case <-u.proxy.ctx.Done():
		return nil, errClosed
	}
	brief = brief && u.running() == nil
	list, err := u.startAndList(u.proxy.ctx)
	if s := u.running(); brief && s != nil {
		u.expire(s) // unless a call uses it by now
	}
	return list, err
}

// turnTime is how long a server that starts keeps others from starting: a few that hang
// must not keep a search from all the rest.
const turnTime = 20 * time.Second

// giveBack returns a function that gives a turn back, which happens by itself after a
// while.
func giveBack(turns <-chan struct{}) func() {
	give := sync.OnceFunc(func() { <-turns })
	timer := time.AfterFunc(turnTime, contain.Func("giving back a turn", give))
	return func() { timer.Stop(); give() }
}

// inBackground does work that Close of the proxy waits for, and reports false if the
// server takes no more.
func (u *upstream) inBackground(work func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed != nil {
		return false
	}
	u.proxy.finished.Go(contain.Func("working in the background", work))
	return true
}

// listTools follows the pages of tools/list to their end or to our bounds.
func listTools(ctx context.Context, s *transport.Session, overHTTP bool, log *slog.Logger) (_ catalog.Definitions, partial string, _ error) {
	b := catalog.NewBuilder(log)
	b.OverHTTP = overHTTP && s.InitializeResult() != nil && s.InitializeResult().ProtocolVersion >= remote.FirstWithHeaders
	for items, err := range s.Pages(ctx, transport.MethodListTools) {
		more := false
		if err == nil {
			more, err = b.Add(ctx, items)
		}
		var unread *transport.PageError
		switch {
		case more:
			continue
		case err == nil:
			log.Warn("the tool list is too long", "kept", b.Count())
			return b.Definitions(), "the list is too long", nil
		case errors.As(err, &unread) && b.Count() > 0: // tools that are right do not go with it
			log.Warn("the rest of the tool list cannot be read", "kept", b.Count(), "err", err)
		case errors.Is(err, transport.ErrTooManyPages):
			log.Warn("the tool list has too many pages", "kept", b.Count())
		default:
			return catalog.Definitions{}, "", err
		}
		return b.Definitions(), err.Error(), nil
	}
	return b.Definitions(), "", nil
}

// recordInfo records what the server said of itself in the handshake.
func recordInfo(record *catalog.Record, s *transport.Session) {
	said := s.InitializeResult()
	if said == nil {
		return
	}
	record.Remember(func(m *catalog.ServerInfo) {
		m.Failure = ""
		m.Instructions = text.CutAfter(text.Clean(said.Instructions), maxInstructions)
		if info := said.ServerInfo; info != nil {
			m.Title, _ = text.SplitAt(text.Clean(info.Title), maxInfo)
			m.Release, _ = text.SplitAt(text.Clean(info.Version), maxInfo)
			m.About = text.Summary(text.Clean(info.Description))
		}
	})
}

// Bounds on what a server says of itself, in characters; the head of a record must
// hold it.
const (
	maxInstructions = 1000
	maxInfo         = 200
)
