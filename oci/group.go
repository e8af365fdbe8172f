package oci

import (
	"runtime"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
)

// A group holds identical standby sandboxes for one kind of process: as many as recently
// ran concurrently. One goroutine per processor makes them, after a run and in the
// background. The pool's mutex guards it.
type group struct {
	pool   *pool
	key    *poolKey
	p      spec.Process
	h      spec.Host
	ready  []*container.Standby
	making int // by a goroutine each
	idle   *time.Timer
	gone   bool // released

	// What forks are made from; nil while there is none.
	template template
	starting chan struct{} // closed when the present start has ended
	refused  error         // why there will be no template
	failures int           // starts in a row that failed
	retry    time.Time     // no start before this time
	notes    []string

	running int // concurrent runs now, and their maxima in this window and the last
	peak    [2]int
	window  time.Time
}

// isLatest reports whether the group is the most recently used one.
func (g *group) isLatest() bool {
	groups := g.pool.groups
	return len(groups) > 0 && groups[len(groups)-1] == g
}

// touch postpones the release of everything.
func (g *group) touch() {
	if g.idle != nil {
		g.idle.Stop()
	}
	if !g.gone {
		g.idle = time.AfterFunc(max(g.pool.options.Idle, time.Second), contain.Func("releasing standby sandboxes", g.releaseIdle))
	}
}

// pop returns a waiting sandbox, or nil.
func (g *group) pop() *container.Standby {
	for len(g.ready) > 0 {
		w := g.ready[0]
		g.ready = slices.Delete(g.ready, 0, 1)
		if w.Alive() {
			return w
		}
		w.Discard()
	}
	return nil
}

// discardOne discards a waiting sandbox.
func (g *group) discardOne() {
	g.ready[0].Discard()
	g.ready = slices.Delete(g.ready, 0, 1)
}

// fill discards standbys beyond the target, and begins to make missing ones.
func (g *group) fill() {
	want := g.target()
	for len(g.ready) > want {
		g.discardOne()
	}
	if want == 0 {
		return
	}
	if g.wantsForks() && (g.template == nil || g.template.Gone()) {
		g.startTemplate()
		return
	}
	for g.making < runtime.GOMAXPROCS(0) && g.hasRoom(want) {
		g.making++
		g.pool.containers.Go(g.make)
	}
}

// make makes sandboxes until there are enough. The caller has counted it.
func (g *group) make() {
	for more := true; more; {
		w, notes := g.makeOne()
		more = false
		if !g.pool.locked("keeping a standby sandbox", func() { more = g.keep(w, notes) }) {
			return
		}
	}
}

// makeOne makes one sandbox, and returns nil if that fails. mu is not held.
func (g *group) makeOne() (w *container.Standby, notes []string) {
	defer contain.Recover("making a standby sandbox", func(error) { w = nil })
	var t template
	var p spec.Process
	var h spec.Host
	if !g.pool.locked("making a standby sandbox", func() { t, p, h = g.template, g.p, g.h }) {
		return nil, nil
	}
	if t != nil {
		return g.fork(t, false), nil
	}
	w, notes, err := g.pool.source.Container(p, h)
	if err != nil {
		w = nil
	}
	return w, notes
}

// keep adds a new sandbox, and reports whether to make another, which it then counts.
func (g *group) keep(w *container.Standby, notes []string) (more bool) {
	g.addNotes(notes...)
	g.making--
	switch {
	case w == nil:
	case g.gone:
		w.Discard()
	default:
		g.ready = append(g.ready, w)
	}
	if w == nil || !g.hasRoom(g.target()) || g.wantsForks() && g.template == nil {
		return false
	}
	g.making++
	return true
}

// addNotes adds notes for the user, each once.
func (g *group) addNotes(notes ...string) {
	g.notes = appendNew(g.notes, notes)
}

// appendNew appends the notes that are not among all yet.
func appendNew(all, notes []string) []string {
	for _, n := range notes {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// releaseIdle releases everything after some time without use.
func (g *group) releaseIdle() {
	g.pool.locked("releasing standby sandboxes", func() {
		if g.running == 0 && !g.gone {
			g.pool.drop(g)
		}
	})
}

// release releases everything. Sandboxes that are being made are released when they are
// done.
func (g *group) release() {
	g.gone = true
	if g.idle != nil {
		g.idle.Stop()
	}
	for len(g.ready) > 0 {
		g.discardOne()
	}
	if g.template != nil {
		g.template.Retire()
	}
	g.template = nil
}

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
