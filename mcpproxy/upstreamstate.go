package mcpproxy

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/login"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

// upstreamState is the running side of an upstream: the server is started at first
// need, kept warm, stopped when idle, and started again after a crash.
type upstreamState struct {
	proxy       *Proxy
	record      *catalog.Record // what is known of it, whether it runs or not
	pins        *pins.Comparison
	partialTold atomic.Pointer[string] // what a run was told of ServerInfo.Partial
	private     atomic.Bool            // what it writes may be from private servers
	dialer      *transport.Dialer
	login       *login.Store // nil where headers of the entry authorize
	secrets     *redact.Redactor
	callTimeout time.Duration       // 0 is none
	turns       *semaphore.Weighted // calls at once
	shared      singleflight.Group  // work that several callers wait for

	mu       sync.Mutex
	live     *transport.Session // nil when it does not run
	starting bool
	place    string    // where live runs, or what is starting; "" until that is known
	since    time.Time // when it was last started
	wrote    []string  // by the last session that has ended, beside its messages
	calls    int       // in flight on live
	timer    *time.Timer
	failure  error
	failedAt time.Time
	backoff  backoff
	closed   error         // why it takes no more calls
	drained  chan struct{} // closed when it was retired and has no more calls

	relisting bool            // a goroutine lists after each change
	underway  map[string]bool // shared work under way, by key; true if a caller stopped waiting for it
	renewedAt time.Time       // when renewing began last, so that a broken server is not started again and again
}

// newUpstreamState makes a server that does not run yet.
func newUpstreamState(p *Proxy, s config.Server) *upstreamState {
	o := p.options
	st := &upstreamState{
		proxy: p, underway: map[string]bool{}, record: catalog.NewRecord(s, p.tools.store), secrets: redact.New(s),
		pins:        pins.NewComparison(s, pins.Store{Dir: o.PinDir}, o.Log),
		callTimeout: cmp.Or(s.CallTimeout, o.CallTimeout), turns: semaphore.NewWeighted(int64(o.CallsAtOnce)),
	}
	st.dialer = &transport.Dialer{
		Server: s, Log: o.Log, DiscoverTimeout: o.discoverTimeout,
		ClientInfo:   &mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion},
		ToolsChanged: (&upstream{server: s, upstreamState: st}).invalidate, Redactor: st.secrets, Guard: &p.guard, MaxMessage: o.maxMessage,
	}
	if s.URL != "" && !hasHeader(s, "Authorization") {
		st.login = login.NewStore(s, o.TokenDir, st.secrets)
		st.dialer.Tokens = st.login
	}
	return st
}

// hasHeader reports whether the entry sets a header.
func hasHeader(s config.Server, name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), func(key string) bool {
		return http.CanonicalHeaderKey(strings.TrimSpace(key)) == name
	})
}
