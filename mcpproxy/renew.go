package mcpproxy

import (
	"context"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
)

const (
	renewAfter = 24 * time.Hour // a list this old is fetched again, in the background
	renewRetry = time.Hour      // after a time that failed
	// renewalDelay makes a renewal wait for the run that needs the tools, and saves a
	// command that ends at once from starting a server in vain.
	renewalDelay   = 3 * time.Second
	renewalsAtOnce = 2
)

// renew has the tools of a server asked for again if they were not for long. It
// returns at once, and a failure leaves what is known as it is.
func (p *Proxy) renew(u *upstream) {
	if u.isOld() {
		u.scheduleListing(p.tools.renewals, p.tools.delay, true)
	}
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

// prune forgets, once and beside other work, the servers that are gone.
func (p *Proxy) prune(upstreams []*upstream) {
	if len(upstreams) == 0 || p.tools.store.Dir == "" {
		return
	}
	p.tools.pruned.Do(func() {
		p.inBackground(upstreams[0], func() {
			keep := map[string]bool{}
			for _, u := range upstreams {
				keep[u.record.Key()] = true
			}
			p.tools.store.Prune(keep)
		})
	})
}

// inBackground does work that Close waits for, unless the servers are being ended,
// which any of them can tell.
func (p *Proxy) inBackground(u *upstream, work func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.isClosed() {
		return false
	}
	p.finished.Go(work)
	return true
}

// Refresh asks a server for its tools and returns them, whatever was known. The
// server is started if it does not run.
func (p *Proxy) Refresh(ctx context.Context, server string) ([]catalog.Tool, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	u.record.Outdated() // what was asked before now does not count
	list, err := u.startAndList(ctx)
	if err != nil {
		return nil, err
	}
	return list.All(), nil
}
