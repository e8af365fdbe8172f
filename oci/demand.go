package oci

import "time"

// demandWindow is how long a number of concurrent runs is remembered at least.
const demandWindow = 15 * time.Second

// waitingForks is the minimum number of waiting forks, so that calls in quick succession
// need not wait: making a fork takes longer than a short run. Each takes 3.3 MB.
const waitingForks = 4

// countRuns records that a run begins (1) or ends (-1).
func (g *group) countRuns(n int) {
	g.running += n
	g.pool.running += n
	if now := time.Now(); now.Sub(g.window) > demandWindow {
		g.peak = [2]int{0, g.peak[0]}
		if now.Sub(g.window) > 2*demandWindow {
			g.peak[1] = 0
		}
		g.window = now
	}
	g.peak[0] = max(g.peak[0], g.running)
}

// target returns how many sandboxes should wait: as many as recently ran concurrently, and
// always a few forks, but none if the host lacks memory for another run, and only one for a
// kind of process that was not the last one used.
func (g *group) target() int {
	if g.gone || g.p.Limits.Memory > 0 && g.pool.source.MemoryAvailable() < g.p.Limits.Memory {
		return 0
	}
	limit := g.pool.options.Max
	switch {
	case !g.isLatest():
		return min(1, limit)
	case g.template != nil:
		return min(max(waitingForks, g.peak[0], g.peak[1]), limit)
	}
	return min(max(1, g.peak[0], g.peak[1]), limit)
}

// hasRoom reports whether to start another if want should wait.
func (g *group) hasRoom(want int) bool {
	return !g.gone && len(g.ready)+g.making < want && g.pool.hasRoom(g)
}
