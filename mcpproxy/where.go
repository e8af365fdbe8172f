package mcpproxy

import (
	"context"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

// Where servers run.
const (
	OnHost    = "host"
	InSandbox = "sandboxed"
	Remote    = "remote"
)

// Unusual returns where the server of a request runs, or "" if that is where such a server runs by
// default: on the host, or in a sandbox if a project's file has its entry.
func (f Facts) Unusual() string {
	if f.Where == whereOf(f.Server, func(s config.Server) bool { return s.Project }) {
		return ""
	}
	return f.Where
}

// whereOf returns where a server runs if sandboxed says which of those over stdio are in sandboxes.
func whereOf(s config.Server, sandboxed func(config.Server) bool) string {
	switch {
	case s.URL != "":
		return Remote
	case sandboxed(s):
		return InSandbox
	}
	return OnHost
}

// where returns where the server runs, or would if it were started now: one that runs stays where it is
// until it ends, and sandboxed, which may read files, is not called then.
func (u *upstream) where(sandboxed func(config.Server) bool) string {
	u.mu.Lock()
	place := ""
	if u.live != nil || u.starting {
		place = u.place
	}
	u.mu.Unlock()
	if place != "" {
		return place
	}
	return whereOf(u.server, sandboxed)
}

// setPlace notes where the server is started.
func (u *upstream) setPlace(where string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.place = where
}

// acquireFor is acquire for a request that was decided on. The server may have been started since in another
// place: what a user has allowed of one in a sandbox does not go to one on the host.
func (u *upstream) acquireFor(ctx context.Context, r request) (s *transport.Session, release func(), err error) {
	s, release, err = u.acquire(ctx)
	if err == nil && u.where(u.proxy.isSandboxed) != r.facts.Where {
		release()
		return nil, nil, ErrChanged
	}
	return s, release, err
}

// isSandboxed reports whether a server would start in a sandbox now.
func (p *Proxy) isSandboxed(s config.Server) bool { return p.sandboxed()(s) }

// sandboxed returns the function of Options.Sandboxed.
func (p *Proxy) sandboxed() func(config.Server) bool {
	if p.options.Sandboxed == nil {
		return func(config.Server) bool { return false }
	}
	return p.options.Sandboxed()
}
