package mcpproxy

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/oauth"
	"github.com/toolcell/toolcell/mcpproxy/pyname"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"golang.org/x/sync/semaphore"
)

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
	p.servers = p.newSnapshot(cfg, before.upstreams)
	kept := map[*life]bool{}
	for _, u := range p.servers.upstreams {
		kept[u.life] = true
	}
	for _, u := range before.upstreams {
		if !kept[u.life] {
			p.finished.Go(func() { u.retire(retireWithin) })
		}
	}
}

// newSnapshot makes a Config ready for use; it takes over from before what can
// stay.
func (p *Proxy) newSnapshot(cfg config.Config, before []*upstream) snapshot {
	lives, aliases := map[string]*life{}, map[string]string{}
	for _, u := range before {
		lives[u.server.Fingerprint()] = u.life
		aliases[u.server.Name] = u.server.Alias
	}
	cfg.Servers = keepAliases(cfg.Servers, aliases)
	now := snapshot{config: cfg, byKey: map[string]*upstream{}}
	for _, s := range cfg.Servers {
		u := &upstream{server: s}
		if len(before) > 0 {
			key := s.Fingerprint()
			u.life = lives[key]
			delete(lives, key) // each for one
		}
		if u.life == nil {
			u.life = p.newLife(s)
		}
		now.upstreams = append(now.upstreams, u)
		now.byKey[s.Name] = u
	}
	for _, u := range now.upstreams { // a name goes before another's alias
		if _, ok := now.byKey[u.server.Alias]; !ok {
			now.byKey[u.server.Alias] = u
		}
	}
	return now
}

// keepAliases returns the servers with the aliases that those of the same name
// had before. New ones get another where theirs is taken.
func keepAliases(servers []config.Server, before map[string]string) []config.Server {
	if len(before) == 0 {
		return servers
	}
	servers = slices.Clone(servers)
	taken := map[string]bool{}
	for i, s := range servers {
		if alias, ok := before[s.Name]; ok {
			servers[i].Alias = alias
			taken[alias] = true
		}
	}
	for i, s := range servers {
		if _, ok := before[s.Name]; ok {
			continue
		}
		if taken[s.Alias] {
			servers[i].Alias = pyname.Server(s.Name, taken)
		}
		taken[servers[i].Alias] = true
	}
	return servers
}

// newLife makes a server that does not run yet.
func (p *Proxy) newLife(s config.Server) *life {
	o := p.options
	l := &life{
		underway: map[string]bool{},
		record:   catalog.NewRecord(s, p.tools.store), secrets: redact.New(s), idle: o.IdleTimeout, turns: semaphore.NewWeighted(int64(o.CallsAtOnce)),
		ctx: p.ctx, finished: &p.finished, log: o.Log,
	}
	options := transport.Options{
		Log: o.Log, StartTimeout: cmp.Or(s.StartTimeout, o.StartTimeout), DiscoverTimeout: o.discoverPatience,
		ClientInfo:   &mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion},
		ToolsChanged: (&upstream{server: s, life: l}).invalidate, Redactor: l.secrets, Guard: &p.guard, MaxMessage: o.maxMessage,
	}
	if s.URL != "" && !hasHeader(s, "Authorization") {
		l.login = oauth.NewStore(s.Name, s.URL, o.TokenDir, l.secrets)
		options.Tokens = l.login
	}
	l.dialer = transport.NewDialer(s, options)
	return l
}

// hasHeader reports whether the entry sets a header.
func hasHeader(s config.Server, name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), func(key string) bool {
		return http.CanonicalHeaderKey(strings.TrimSpace(key)) == name
	})
}
