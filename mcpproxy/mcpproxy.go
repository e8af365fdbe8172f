// Package mcpproxy makes the user's other MCP servers one catalog of tools
// that can be searched and called.
//
// A [Proxy] starts or reaches each server at first need, over stdio, streamable
// HTTP or SSE, keeps one live connection to it, and ends a process with its whole
// group. A server's secrets (its environment, headers, tokens) are in no error
// text. Results and schemas are handed on as the server wrote them. What servers
// send is not trusted, and is bounded. They run with the user's own rights, since
// the user configured them, or as Options.Launch wants. The caller decides which code
// may call which server.
//
// Its parts are packages that can be read alone:
//
//	config      a server's entry, and what makes one valid
//	clientconfig  which servers the user has: clients' files and dialects, precedence, trust, changes
//	clientconfig/edit  toolcell's own entry in a client's file
//	transport   one session with one server; login logs in to it
//	catalog     a server's tools, in memory and on disk
//	pins        how they were defined at first, to notice changes
//	search      which tools fit a need
//	signature   how a tool is called from Python
//	policy      what may be called, and how often
//	elicitation what a server asks the user for, and the answer
//	redact      takes a server's secrets out of texts
//
// Here they come together. A Proxy offers the methods in proxytools.go, prepared.go,
// elicitcapabilities.go, proxylogin.go and proxypins.go; prepared.go takes one request from
// name to answer.
// One server is an upstream: upstream.go starts and ends it, upstreamtools.go lists its
// tools, servererrors.go puts its errors into words, exchange.go takes what the server asks
// meanwhile to the user, and upstreamstate.go holds what outlives a change of its entry.
// search.go searches over all servers, and searchindex.go makes the index for it.
package mcpproxy

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// Options sets up a Proxy. The zero value works.
type Options struct {
	Log           *slog.Logger     // none by default
	Signals       *signals.Signals // of sessions; those of requests are in their contexts
	IdleTimeout   time.Duration    // release a server that was not used for so long; 0 never
	StartTimeout  time.Duration    // for a server to get ready, 2 min by default
	CallTimeout   time.Duration    // for one call; 0 is the caller's context alone
	CallsAtOnce   int              // of one server, 32 by default; further ones wait
	ClientName    string           // the client name that servers see; "toolcell" by default
	ClientVersion string
	// TokenDir is where logins are kept (Login); without it servers that want
	// one cannot be used.
	TokenDir string
	// CatalogDir keeps the tools of servers from process to process; if it is empty, they
	// are not kept.
	CatalogDir string
	// PinDir keeps the definitions of tools, to notice changes; if it is empty, nothing is
	// pinned.
	PinDir string
	// Launch returns what starts a stdio server; nil is a process of this host, as without
	// Launch. It is asked at each start. Its error refuses this start, in its words: the next
	// call asks again, without a pause.
	Launch func(s config.Server) (stdio.Launcher, error)
	// Sandboxed is called at each listing of the servers and, for one that does not run, at a request; it returns a function that reports
	// whether Launch would start a stdio server in a sandbox; without it, none is.
	Sandboxed func() func(s config.Server) bool
	// Refresh calls update with the servers there are now if they have changed since its last
	// call. It is called when the servers are listed: once a run, and in no call of a tool.
	Refresh func(update func(config.Config))

	// discoverTimeout is how long a server may leave server/discover
	// unanswered; 5 s by default. Tests shorten it.
	discoverTimeout time.Duration
	// openTimeout is how long to wait for a server to report that the user is done at an
	// address; 15 s by default. Tests shorten it.
	openTimeout time.Duration
	maxMessage  int // of a remote server
}

// Proxy holds the connections to all servers of one Config. Its methods may be
// used at the same time. Close it to end the servers.
type Proxy struct {
	options  Options
	cancel   context.CancelFunc
	ctx      context.Context // ends with Close
	finished sync.WaitGroup
	guard    stdio.Guard
	tools    knownTools

	signatures signature.Cache
	elicits    atomic.Pointer[ElicitCapabilities] // of the client; nil is none
	timeouts   atomic.Pointer[timeouts]

	mu      sync.RWMutex
	servers snapshot
	closed  bool
}

// current returns the present snapshot.
func (p *Proxy) current() snapshot {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.servers
}

// timeouts are the Options of that name, which may change.
type timeouts struct{ start, idle time.Duration }

// SetTimeouts replaces Options.StartTimeout, for the starts that follow, and Options.IdleTimeout, for
// what is idle after the next call.
func (p *Proxy) SetTimeouts(start, idle time.Duration) {
	p.timeouts.Store(&timeouts{cmp.Or(start, 2*time.Minute), idle})
}

// New makes a Proxy. It starts nothing yet.
func New(cfg config.Config, o Options) *Proxy {
	o.Log, o.ClientName = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.ClientName, "toolcell")
	o.discoverTimeout = cmp.Or(o.discoverTimeout, 5*time.Second)
	o.maxMessage = cmp.Or(o.maxMessage, message.MaxSize)
	o.CallsAtOnce, o.openTimeout = cmp.Or(max(o.CallsAtOnce, 0), 32), cmp.Or(o.openTimeout, 15*time.Second)
	p := &Proxy{options: o}
	p.SetTimeouts(o.StartTimeout, o.IdleTimeout)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.tools.open(o.CatalogDir, o.Log)
	p.servers = newSnapshot(p, cfg, nil)
	return p
}

// Servers reports every server in order of discovery, and after them those
// that were left out, with the reason.
func (p *Proxy) Servers() []ServerStatus {
	if p.options.Refresh != nil {
		p.options.Refresh(p.Update)
	}
	return p.current().statuses(p.sandboxed())
}

// Usable returns the servers that code can see: of those that were left out it gets no name.
func (p *Proxy) Usable() []ServerStatus {
	return slices.DeleteFunc(p.Servers(), func(st ServerStatus) bool { return st.Alias == "" })
}

// Problems returns what discovery had to leave out, whole files included.
func (p *Proxy) Problems() []config.Problem { return p.current().config.Problems }

// Lookup finds a server by name or alias. Its error names the nearest one.
func (p *Proxy) Lookup(nameOrAlias string) (config.Server, error) {
	u, err := p.upstream(nameOrAlias)
	if err != nil {
		return config.Server{}, err
	}
	return u.described(), nil
}

// upstream finds a server as the configuration has it now.
func (p *Proxy) upstream(nameOrAlias string) (*upstream, error) {
	return p.current().upstream(nameOrAlias)
}

// maxSwaps is how often a server is looked up again because the configuration
// changed in the moment between finding and using it.
const maxSwaps = 3

// retireWithin is how long the calls in flight of a server that was changed or
// removed may still take.
const retireWithin = time.Minute

// Update puts another Config in place of the present one, while everything
// runs. Servers that are started or reached as before stay as they are, with
// their connections and tools; others are ended when their calls in flight are
// done. A server keeps its alias as long as its name is configured.
func (p *Proxy) Update(cfg config.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	before := p.servers
	p.servers = newSnapshot(p, cfg, before.upstreams)
	kept := map[*upstreamState]bool{}
	for _, u := range p.servers.upstreams {
		kept[u.upstreamState] = true
	}
	for _, u := range before.upstreams {
		if !kept[u.upstreamState] {
			p.finished.Go(contain.Func("ending a server", func() { u.retire(errRetired, retireWithin) }))
		}
	}
}

// Close ends all servers with their process groups and waits until they are
// gone. Calls in flight fail.
func (p *Proxy) Close() error {
	p.cancel()
	p.mu.Lock()
	p.closed = true // no Update adds servers from here on
	all := p.servers.upstreams
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, u := range all {
		closing.Go(contain.Func("ending a server", func() { u.retire(errClosed, 0) }))
	}
	closing.Wait()
	p.finished.Wait()
	p.guard.Close()
	return nil
}

// WithoutSecrets returns a text for the record of runs: without the secrets of the servers' entries.
func (p *Proxy) WithoutSecrets(text string) string {
	for _, u := range p.current().upstreams {
		text = u.secrets.Record(text)
	}
	return text
}
