// Package pool keeps sandboxes ready for the next process: forks of a template,
// or containers where forking is refused. It follows demand, and releases
// everything after a time without use.
package pool

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// The ways to start sandboxes ahead of their use.
const (
	StartAuto      = "auto"      // forks, or where they cannot be had containers
	StartFork      = "fork"      // the same, but runs wait for the template, and notes say why there is none
	StartContainer = "container" // containers
)

// Options say how many sandboxes wait to be used, and for how long.
type Options struct {
	Start string        // auto if empty
	Max   int           // sandboxes waiting at once; none ever if 0
	Idle  time.Duration // after the last use everything is released
	Renew int           // forks of one template; 500 if 0
}

// A Template makes standby sandboxes by forking. That of package template is one.
type Template interface {
	Fork(now bool) (*container.Standby, error) // now: a run waits for it already
	Count() int                                // forks so far
	FailedModules() []string                   // notes about those that could not be preloaded
	Gone() bool                                // it has ended
	Retire()                                   // it ends once its last fork has
}

// A Source starts what a pool holds.
type Source struct {
	Template func(p spec.Process, h spec.Host) (Template, error)
	// Container also returns notes about modules that could not be preloaded.
	Container       func(p spec.Process, h spec.Host) (*container.Standby, []string, error)
	MemoryAvailable func() int64 // what programs could have without swapping, in bytes
}

// A State describes a pool at one moment.
type State struct {
	Ready, Making int
	Running       int      // runs at work; demand follows it
	Template      Template // nil if there is none
}

// A Pool holds standby sandboxes, all alike: for the process of the last
// request. As many wait as recently ran at once. One goroutine for each
// processor makes them, after a run and in the background.
type Pool struct {
	containers *container.Runtime
	source     Source

	mu      sync.Mutex
	options Options
	key     *poolKey // nil if it is for none
	p       spec.Process
	h       spec.Host
	ready   []*container.Standby
	making  int
	makers  int // goroutines
	idle    *time.Timer
	closed  bool

	// What forks are made from; nil while there is none.
	template Template
	starting chan struct{} // closed when the present start has ended
	refused  error         // why there will be no template
	failures int           // starts in a row that failed
	retry    time.Time     // no start before this time
	notes    []string

	running int // concurrent runs now, and the most in this window and the last
	peak    [2]int
	window  time.Time
}

// New makes a pool that is empty until Keep sets its size.
func New(e *container.Runtime, s Source) *Pool { return &Pool{containers: e, source: s} }

// A poolKey tells processes apart that cannot take each other's place.
type poolKey struct {
	Files    []fileKey
	Root     spec.Root
	Binds    []spec.Bind
	Args     []string
	Env      []string
	Python   *spec.Python
	Limits   spec.Limits
	UID, GID uint32
}

// A fileKey is a folder or file of the host. One that was removed and made again
// is another: a sandbox still has the old one.
type fileKey struct{ Dev, Ino uint64 }

func keyOf(p spec.Process, h spec.Host) *poolKey {
	k := &poolKey{nil, p.Root, p.Binds, p.Args, p.Env, p.Python, p.Limits, p.UID, p.GID}
	add := func(path string) {
		var st unix.Stat_t
		_ = unix.Stat(path, &st) // the start says what is wrong with it
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

// SetOptions sets what waits from now on.
func (o *Pool) SetOptions(w Options) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.Renew <= 0 {
		w.Renew = 500
	}
	o.options = w
}

// Prepare begins to make ready for p.
func (o *Pool) Prepare(p spec.Process, h spec.Host) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.options.Max <= 0 {
		return
	}
	o.retarget(p, h)
	o.fill()
}

// Acquire gives a standby sandbox, nil if a fresh one is to serve, and what to
// call once when its use ends.
func (o *Pool) Acquire(ctx context.Context, p spec.Process, h spec.Host) (*container.Standby, func()) {
	o.mu.Lock()
	if o.closed || o.options.Max <= 0 {
		o.mu.Unlock()
		return nil, func() {}
	}
	o.retarget(p, h)
	o.countRuns(1)
	w := o.pop()
	if w == nil && o.options.Start == StartFork {
		o.awaitTemplate(ctx)
	}
	t := o.template
	o.mu.Unlock()
	if w == nil && t != nil {
		w = o.fork(t, true)
	}
	return w, func() {
		o.mu.Lock()
		o.countRuns(-1)
		o.touch()
		o.mu.Unlock()
		o.containers.Later(container.AfterAnswer, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.fill()
		})
	}
}

// retarget makes p the process that the pool is for.
func (o *Pool) retarget(p spec.Process, h spec.Host) {
	key := keyOf(p, h)
	o.touch()
	if reflect.DeepEqual(key, o.key) {
		return
	}
	o.drop()
	o.key, o.h, o.p = key, h, p
	o.refused, o.failures, o.retry, o.notes = nil, 0, time.Time{}, nil
}

// touch postpones the time at which everything is released.
func (o *Pool) touch() {
	if o.idle != nil {
		o.idle.Stop()
	}
	if !o.closed {
		o.idle = time.AfterFunc(max(o.options.Idle, time.Second), o.releaseIdle)
	}
}

// pop gives one that waits.
func (o *Pool) pop() *container.Standby {
	for len(o.ready) > 0 {
		w := o.ready[0]
		o.ready = slices.Delete(o.ready, 0, 1)
		if w.Alive() {
			return w
		}
		w.Discard()
	}
	return nil
}

// fill begins to make what is missing.
func (o *Pool) fill() {
	want := o.target()
	for len(o.ready) > want {
		o.ready[0].Discard()
		o.ready = slices.Delete(o.ready, 0, 1)
	}
	if want == 0 {
		return
	}
	if o.wantsForks() && (o.template == nil || o.template.Gone()) {
		o.startTemplate()
		return
	}
	for o.makers < runtime.GOMAXPROCS(0) && o.hasRoom(want) {
		o.makers++
		o.making++
		o.containers.Go(o.make)
	}
}

// make makes sandboxes until there are enough. It has been counted.
func (o *Pool) make() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		t, key, p, h := o.template, o.key, o.p, o.h
		o.mu.Unlock()
		var w *container.Standby
		var notes []string
		var err error
		if t != nil {
			w = o.fork(t, false)
		} else if w, notes, err = o.source.Container(p, h); err != nil {
			w = nil
		}
		o.mu.Lock()
		o.addNotes(notes...)
		o.making--
		switch {
		case w == nil:
		case o.closed || key != o.key:
			w.Discard()
		default:
			o.ready = append(o.ready, w)
		}
		if w == nil || !o.hasRoom(o.target()) || o.wantsForks() && o.template == nil {
			break
		}
		o.making++
	}
	o.makers--
}

// addNotes adds what the user should know, each note once.
func (o *Pool) addNotes(notes ...string) {
	for _, n := range notes {
		if !slices.Contains(o.notes, n) {
			o.notes = append(o.notes, n)
		}
	}
}

// releaseIdle lets everything go after a time without use.
func (o *Pool) releaseIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running == 0 {
		o.drop()
	}
}

// drop releases everything. Sandboxes being made are released when they are
// done.
func (o *Pool) drop() {
	for _, w := range o.ready {
		w.Discard()
	}
	if o.template != nil {
		o.template.Retire()
	}
	o.ready, o.template, o.key = nil, nil, nil
}

// Close ends waiting sandboxes. No more are made.
func (o *Pool) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.idle != nil {
		o.idle.Stop()
	}
	o.drop()
}

// State describes the pool now.
func (o *Pool) State() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return State{len(o.ready), o.making, o.running, o.template}
}

// Notes returns what the user should know.
func (o *Pool) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.notes)
}
