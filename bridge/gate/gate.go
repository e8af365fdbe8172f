// Package gate decides, for one run or one command, what of it gets to the user's servers,
// and is the only way there: tools, resources, prompts and live lists, the sources of saved
// tools, and what is granted before code starts, hosts and packages.
//
// Each such effect passes [Gate.Do], [Gate.Grant] or [Gate.AskSaved]: it is admitted, prepared, bound,
// decided on, asked about, reserved, sent and recorded, in this order. The gate promises that
//
//   - nothing of a server is used that the run was not granted or its policy denies, and
//     nothing is started for that,
//   - the bytes that are decided on, shown to the user, recorded and sent are the same, and
//     what changes between the decision and the sending is decided on anew,
//   - what cannot be decided is refused: an error, a panic, or the zero [Verdict],
//   - limits count what went out, each call once,
//   - code gets of a server's error no more than it may read.
//
// It does not judge what a granted server does.
package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// Options configure a Gate. The zero value refuses everything.
type Options struct {
	Upstreams *mcpproxy.Proxy  // the user's MCP servers
	Granted   map[string]bool  // names of the servers that may be used
	Policy    *policy.Enforcer // what may be done there, and how often; nil allows nothing
	Asker     *consent.Asker   // asks the user; with nil, what is to be asked fails
	// Can are the ways in which what servers ask can be asked; none without an Asker.
	Can mcpproxy.ElicitCapabilities
	// Taint are what the connection has read from private servers, and Hosts what the run
	// can reach. Without Taint it counts as having read private data.
	Taint *consent.Taint
	Hosts []string
	// Command: the user has typed the command that does all this, and sees whole errors.
	Command bool
	// Plan makes it a dry run: what may change something is kept in Plan instead of being
	// sent.
	Plan bool
	// Progress gets what servers say of calls that they work on. It may be nil.
	Progress func(text string)
	// Record has every request; nil records nothing. RecordRequired: what cannot be recorded is not sent.
	Record         *record.Run
	RecordRequired bool
	// Earlier is what the record may keep of earlier runs of the session, whose variables are there.
	Earlier Keeping
	Log     *slog.Logger // nothing is logged if nil
}

// A Gate is that of one run, or of one command. It is safe for concurrent use.
type Gate struct {
	o        Options
	calls    callRecorder
	progress callProgress
	planner  planner
	stopped  atomic.Pointer[error]
	denied   atomic.Bool
	silent   atomic.Pointer[mcpproxy.SilentError]

	mu       sync.Mutex
	used     []string          // servers whose tools the code has called or read about
	unusual  map[string]string // where servers ran to which something was sent, if not where they do by default
	recorded []record.Done     // the last calls that may have changed something
	pins     []string          // changes of tools, and hints that were accepted, that are on record
	sentOut  int               // calls that left
	keeping  Keeping           // of what the code may have by now
}

// New makes a Gate.
func New(o Options) *Gate {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Asker == nil {
		o.Can = mcpproxy.ElicitCapabilities{}
	}
	g := &Gate{
		o: o, progress: callProgress{report: o.Progress}, planner: planner{dry: o.Plan, order: newCallOrder()},
		calls: callRecorder{ended: map[Outcome]int{}},
	}
	if g.keeping = o.Earlier; o.Record != nil {
		g.keeping = g.keeping.And(PrivateGrant(o.Upstreams, o.Policy, maps.Keys(o.Granted)))
	}
	return g
}

// A Request is one thing that is wanted of a server.
type Request struct {
	Method, Server, Name string // as in mcpproxy.Want; Server is a name or an alias
	// Arguments are those of a tool or prompt, as a JSON object. With Unchecked they go out
	// whatever the tool's schema says.
	Arguments json.RawMessage
	Unchecked bool
	// Args and Named are there in place of Arguments if they are to be bound to the tool's
	// parameters, as the arguments of a function.
	Args, Named json.RawMessage
	// Typed: the values of Named are texts, which the user has typed (signature.Read).
	Typed bool

	// Raw is all of it as the code wrote it, and Derived says that the code has something of a
	// planned result that does not show it.
	Raw     json.RawMessage
	Derived bool

	More   bool // others may follow at once
	Line   int  // of the code that wants it, as the code says; 0 if it is not known
	Number int  // by which the code made its requests one after the other; 0 if it is not known
}

// mayBePlanned reports whether a dry run plans some requests like this.
func (r Request) mayBePlanned() bool {
	return r.Method == mcpproxy.CallTool || r.Method == mcpproxy.ReadResource || r.Method == mcpproxy.GetPrompt
}

// maxChanges is how often something is prepared that changes before it can be sent.
const maxChanges = 3

// Do carries out a request and returns the answer: the result as the server wrote it, or of
// a planned call a list of its place in the plan and the shape of its result.
func (g *Gate) Do(ctx context.Context, r Request) (answer json.RawMessage, err error) {
	var p *mcpproxy.Prepared
	start := time.Now()
	defer func() { g.exportRefusal(ctx, start, r, p, err) }() // also one by a panic
	defer contain.Error("deciding on a call", &err)
	if !r.mayBePlanned() {
		g.Settled(r.Number)
	}
	if err := g.checkPlaceholders(ctx, r); err != nil {
		return nil, refuse(signals.InvalidArguments, err)
	}
	j := g.journal(r)
	defer func() { g.close(j, err) }()
	arrived := g.announce(r.More)
	defer arrived()
	server, err := g.admit(r.Server)
	if err != nil {
		return nil, err
	}
	g.found(j, server)
	var allowed []*policy.Ask // by the user, of just this request
	for range maxChanges {
		var e Effect
		if p, e, err = g.prepare(ctx, server, r); err != nil {
			return nil, g.Shown(server.Name, err)
		}
		v := g.decide(ctx, &e, allowed)
		j.decided(e, v)
		for v.Ask != nil {
			if err := g.ask(ctx, v.Ask, &e, j.number, r.Number, arrived); err != nil {
				return nil, err
			}
			allowed = append(allowed, v.Ask)
			v = g.decide(ctx, &e, allowed) // the run may have been stopped, or read private data
			j.decided(e, v)
		}
		switch {
		case v.Planned:
			arrived()
			return g.plan(ctx, e, r.Number)
		case !v.Allowed:
			return nil, v.why()
		}
		arrived()
		result, err := g.send(ctx, p, e, r.Number, j)
		if errors.Is(err, mcpproxy.ErrChanged) && !p.Sent() {
			j.again()
			continue
		}
		return result, g.Shown(server.Name, err)
	}
	return nil, fmt.Errorf("server %q: %w", server.Name, mcpproxy.ErrChanged)
}

// send sends what was decided on: it takes room in all limits, and is on record before it
// goes out.
func (g *Gate) send(ctx context.Context, p *mcpproxy.Prepared, e Effect, number int, j *journaled) (json.RawMessage, error) {
	giveBack, err := g.o.Policy.Reserve(e.call())
	if err != nil {
		return nil, err
	}
	defer func() { // also if it panics
		if !p.Sent() {
			giveBack()
		}
	}()
	if err := g.start(j, e); err != nil {
		return nil, err
	}
	g.planner.decide(number)
	if g.Keeping().Private {
		g.o.Upstreams.NotePrivate(e.Facts.Server.Name)
	}
	entry := g.calls.begin(e, p)
	result, err := p.Send(ctx, e.Args, g.user(), g.progress.of(e.Facts.Server.Name, e.asked))
	g.calls.end(entry, outcomeOf(result, err, p.Sent()))
	g.end(j, result, err, p.Sent())
	if p.Sent() {
		g.sent(e.Facts.Server, e.subject())
		g.noteWhere(e.Facts)
	}
	return result.JSON, err
}

// admit finds a server that may be used, or returns why it may not. It is called before
// anything that starts the server.
func (g *Gate) admit(name string) (config.Server, error) {
	server, err := g.o.Upstreams.Lookup(name)
	if err != nil {
		return server, refuse(signals.UnknownServer, err)
	}
	if !g.o.Granted[server.Name] {
		return server, refuse(signals.NotGranted, fmt.Errorf("server %q is not granted to this run: call run_python with %q in its servers argument", server.Name, server.Name))
	}
	if err := g.o.Policy.ServerDenied(policyServer(server)); err != nil {
		return server, err
	}
	g.NoteUsed(server.Name)
	return server, nil
}

// prepare finds out what is wanted, and what will be sent. Arguments that do not fit what is
// known of a tool are rejected only if they do not fit the running server's tool either.
func (g *Gate) prepare(ctx context.Context, server config.Server, r Request) (*mcpproxy.Prepared, Effect, error) {
	w := mcpproxy.Want{Method: r.Method, Name: r.Name, Can: g.o.Can}
	w.Live = r.Method == mcpproxy.CallTool && (g.o.Plan || g.o.Policy.GoesByDefinitions(policyServer(server)))
	for {
		p, err := g.o.Upstreams.Prepare(ctx, server.Name, w)
		if err != nil {
			return nil, Effect{}, err
		}
		e, err := g.bind(ctx, p, r)
		if err == nil || w.Live || r.Method != mcpproxy.CallTool {
			return p, e, refuse(signals.InvalidArguments, err)
		}
		w.Live = true
	}
}

// NoteUsed notes that the code calls or reads about the tools of a server.
func (g *Gate) NoteUsed(server string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.used, server) {
		g.used = append(g.used, server)
	}
}

// Used returns the servers whose tools the code has called or read about.
func (g *Gate) Used() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.used)
}

// noteWhere notes where a server runs to which something was sent.
func (g *Gate) noteWhere(f mcpproxy.Facts) {
	where := f.Unusual()
	if where == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unusual == nil {
		g.unusual = map[string]string{}
	}
	g.unusual[f.Server.Name] = where
}

// Where returns, by name, where servers ran to which something was sent, if not where such servers run by
// default.
func (g *Gate) Where() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.unusual)
}

// Stop refuses all that is still to come: the run is ending.
func (g *Gate) Stop(why error) { g.stopped.Store(&why) }

// WhyStopped returns why Stop was called, nil if it was not.
func (g *Gate) WhyStopped() error {
	if why := g.stopped.Load(); why != nil {
		return *why
	}
	return nil
}

// HasDenied reports whether the user has denied something that the code wanted.
func (g *Gate) HasDenied() bool { return g.denied.Load() }

// IsStopped reports whether an error is that a run was stopped by the user, or by the lack of an
// answer.
func IsStopped(err error) bool {
	return errors.Is(err, consent.ErrStopped) || errors.Is(err, consent.ErrExpired)
}

// announce is consent.Asker.Announce, if there is an asker.
func (g *Gate) announce(more bool) (arrived func()) {
	if g.o.Asker == nil {
		return func() {}
	}
	return g.o.Asker.Announce(more)
}
