package oci

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// The ways to start sandboxes in advance.
const (
	StartAuto      = "auto"      // forks, or containers if forks are impossible
	StartFork      = "fork"      // the same, but runs wait for the template, and notes say why there is none
	StartContainer = "container" // containers
)

// PoolOptions limit how many sandboxes wait, and for how long.
type PoolOptions struct {
	Start string        // auto if empty
	Max   int           // waiting sandboxes; none if 0
	Idle  time.Duration // after the last use, until everything is released
	Renew int           // forks of one template; 500 if 0
}

// A template makes standby sandboxes by forking. fork.Template is one.
type template interface {
	Fork(now bool) (*container.Standby, error) // now: a run waits for it already
	Count() int                                // forks so far
	Memory() int64                             // bytes that it holds, 0 if that is not known
	FailedModules() []string                   // notes about modules that could not be preloaded
	Gone() bool                                // it has ended
	Retire()                                   // end it once its last fork has ended
}

// A poolSource starts what a pool holds.
type poolSource struct {
	Template func(p spec.Process, h spec.Host) (template, error)
	// Container also returns notes about modules that could not be preloaded.
	Container       func(p spec.Process, h spec.Host) (*container.Standby, []string, error)
	MemoryAvailable func() int64 // bytes that programs could use without swapping
}

// maxGroups bounds the kinds of processes with standbys: each may hold a started Python,
// which takes some 20 MB in addition to its imports.
const maxGroups = 4

// A pool holds standby sandboxes for the processes of the last requests, in a group for each
// kind of process: forks of a template, or containers if forking is refused. Their number
// follows demand. The least recently used group is dropped first, and all are dropped after
// some time without use.
type pool struct {
	containers *container.Runtime
	source     poolSource

	mu      sync.Mutex // guards the groups, too
	options PoolOptions
	groups  []*group // the most recently used last
	running int      // concurrent runs now
	closed  bool
}

// newPool makes a pool that is empty until SetOptions sets its size.
func newPool(e *container.Runtime, s poolSource) *pool { return &pool{containers: e, source: s} }

// A poolKey identifies a kind of process. Processes with equal keys are interchangeable.
type poolKey struct {
	Files   []fileKey
	Process spec.Process
}

// A fileKey identifies a folder or file of the host. One that was removed and created again
// has another key: a sandbox still has the old one.
type fileKey struct{ Dev, Ino uint64 }

func keyOf(p spec.Process, h spec.Host) *poolKey {
	k := &poolKey{Process: p}
	add := func(path string) {
		var st unix.Stat_t
		_ = unix.Stat(path, &st) // the start reports the error
		k.Files = append(k.Files, fileKey{st.Dev, st.Ino})
	}
	add(p.Root.Dir)
	for _, b := range p.Binds {
		add(b.Source)
	}
	for _, m := range h.Mounts {
		add(m.Source)
	}
	return k
}

// locked calls f with mu held. A panic in f leaves groups in an unknown state: the pool is
// then closed, its sandboxes are discarded, further runs start without it, and ok is false.
func (o *pool) locked(work string, f func()) (ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer contain.Recover(work, func(error) {
		groups := o.groups
		o.closed, o.groups = true, nil
		for _, g := range groups {
			g.gone = true
			_ = contain.Call("discarding standby sandboxes", func() error { g.release(); return nil })
		}
	})
	f()
	return true
}

// SetOptions sets the options from now on.
func (o *pool) SetOptions(w PoolOptions) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.Renew <= 0 {
		w.Renew = 500
	}
	o.options = w
}

// Prepare begins to make sandboxes for p.
func (o *pool) Prepare(p spec.Process, h spec.Host) {
	o.locked("preparing standby sandboxes", func() {
		if !o.closed && o.options.Max > 0 {
			o.use(p, h).fill()
		}
	})
}

// Acquire returns a standby sandbox, nil if there is none, and a function to call once when
// the run ends.
func (o *pool) Acquire(ctx context.Context, p spec.Process, h spec.Host) (*container.Standby, func()) {
	var g *group
	var w *container.Standby
	var t template
	ok := o.locked("taking a standby sandbox", func() {
		if o.closed || o.options.Max <= 0 {
			return
		}
		g = o.use(p, h)
		g.countRuns(1)
		w = g.pop()
		contain.Point("pool: locked")
		if w == nil && o.options.Start == StartFork {
			g.awaitTemplate(ctx)
		}
		t = g.template
	})
	if !ok && w != nil {
		w.Discard()
	}
	if !ok || g == nil {
		return nil, func() {}
	}
	if w == nil && t != nil {
		w = g.fork(t, true)
	}
	return w, func() {
		o.locked("giving back the place of a run", func() {
			g.countRuns(-1)
			g.touch()
		})
		o.containers.Later(container.AfterAnswer, func() {
			o.locked("making standby sandboxes", g.fill)
		})
	}
}

// use returns the group for p, which becomes the most recently used one. The caller holds mu.
func (o *pool) use(p spec.Process, h spec.Host) *group {
	key := keyOf(p, h)
	at := slices.IndexFunc(o.groups, func(g *group) bool { return reflect.DeepEqual(g.key, key) })
	if at < 0 {
		o.makeRoom(key)
		o.groups = append(o.groups, &group{pool: o, key: key, p: p, h: h})
		at = len(o.groups) - 1
	}
	g := o.groups[at]
	o.groups = append(slices.Delete(o.groups, at, at+1), g)
	g.touch()
	return g
}

// Forget discards what waits for p: what it shows has changed. The next use begins anew.
func (o *pool) Forget(p spec.Process, h spec.Host) {
	o.locked("discarding standby sandboxes", func() {
		key := keyOf(p, h)
		for _, g := range slices.Clone(o.groups) {
			if reflect.DeepEqual(g.key, key) {
				o.drop(g)
			}
		}
	})
}

// makeRoom drops groups for a new one: those with another root, since an image that was
// replaced is not used again, and if necessary the least recently used one.
func (o *pool) makeRoom(key *poolKey) {
	for _, g := range slices.Clone(o.groups) {
		if !reflect.DeepEqual(g.key.Process.Root, key.Process.Root) || g.key.Files[0] != key.Files[0] {
			o.drop(g)
		}
	}
	if len(o.groups) >= maxGroups {
		o.drop(o.groups[0])
	}
}

// drop releases a group.
func (o *pool) drop(g *group) {
	o.groups = slices.DeleteFunc(o.groups, func(other *group) bool { return other == g })
	g.release()
}

// waiting returns how many sandboxes wait or are being made.
func (o *pool) waiting() (n int) {
	for _, g := range o.groups {
		n += len(g.ready) + g.making
	}
	return n
}

// hasRoom reports whether one more sandbox may wait in g. Running and waiting sandboxes
// together stay within Max. For the latest group, sandboxes of other groups are discarded.
func (o *pool) hasRoom(g *group) bool {
	limit := max(o.options.Max, 2)
	for _, other := range o.groups {
		for other != g && g.isLatest() && o.waiting()+o.running >= limit && len(other.ready) > 0 {
			other.discardOne()
		}
	}
	return o.waiting()+o.running < limit
}

// Close ends waiting sandboxes and stops making more.
func (o *pool) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for len(o.groups) > 0 {
		o.drop(o.groups[0])
	}
}

// Notes returns notes for the user, each once.
func (o *pool) Notes() (notes []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range o.groups {
		notes = appendNew(notes, g.notes)
	}
	return notes
}
