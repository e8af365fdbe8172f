// Package limits enforces the limits of a running sandbox that no cgroup
// enforces, and records which were hit. Without a memory cgroup it checks the
// sandbox every few milliseconds, so code can exceed the limit for that long.
package limits

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Watch enforces the limits of a running sandbox that no cgroup enforces,
// kills the whole sandbox where the kernel would kill only one of its
// processes, and records which limits were hit.
type Watch struct {
	s      Sandbox
	cgroup host.Cgroup
	memory *memoryWatch // nil where a cgroup limits memory and processes
	loops  []*watching
	events chan struct{}
	oom    atomic.Bool
	pids   atomic.Bool
	broken atomic.Pointer[error] // the watch's own failure, for which it ended the sandbox
	slice  string                // memory.events of the cgroup above a scope of systemd's
	before int64                 // its count of kills at the start
	rest   rest
}

// A Sandbox is what a Watch needs to know of a sandbox.
type Sandbox interface {
	PID() int // of its first process
	Kill()    // ends everything in it
	Cgroup() (cgroups.Manager, error)
	// OOM gives a value each time that the memory limit is hit, and is closed
	// when the cgroup is gone. It is needed with cgroup v1, and where systemd
	// removes the cgroup before it can be asked.
	OOM() (<-chan struct{}, error)
}

// Start enforces l in a started sandbox until Report is called.
func Start(s Sandbox, l spec.Limits, h host.Host) *Watch {
	w := &Watch{s: s, cgroup: h.Cgroup, events: make(chan struct{})}
	w.watchOOM()
	w.watchSlice()
	if h.Cgroup.Memory && !h.Cgroup.V2 {
		go (&socketWatch{w.newWatching()}).run(l.SocketBuffers())
	}
	if !(h.Cgroup.Memory && h.Cgroup.PIDs) {
		if h.Cgroup.Memory {
			l.Memory = 0
		}
		if h.Cgroup.PIDs {
			l.PIDs = 0
		}
		w.memory = &memoryWatch{pid: s.PID(), limits: l, watching: w.newWatching()}
		go w.memory.run(!h.NoProc)
	}
	return w
}

// Stop ends the watch of a sandbox that is being ended.
func (w *Watch) Stop() {
	for _, loop := range w.loops {
		loop.stop()
		<-loop.ended
	}
}

// fail ends the sandbox because its limits are no longer enforced.
func (w *Watch) fail(err error) {
	w.broken.CompareAndSwap(nil, &err)
	w.s.Kill()
}

// Err returns why the watch ended the sandbox if it failed itself, or nil.
func (w *Watch) Err() error {
	if err := w.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Kill ends the sandbox because its time is up.
func (w *Watch) Kill() {
	defer contain.Recover("ending a sandbox", w.fail)
	if w.memory != nil {
		w.memory.lastLook()
	}
	w.killAtLimit()
}

// killAtLimit ends the sandbox at once: its first process, and with that all
// others.
func (w *Watch) killAtLimit() {
	w.notePIDs()
	w.s.Kill()
}

// Report ends the watch, after the sandbox has ended and before it is destroyed, and
// reports whether its limits on memory and processes were hit. killed means that the first
// process was killed, and not by us; there means that the cgroup certainly still exists.
func (w *Watch) Report(killed, there bool) (oom, pids bool) {
	w.Stop()
	w.notePIDs()
	switch {
	case !w.cgroup.Memory:
	case w.cgroup.Driver == host.CgroupFS || there:
		if w.count("memory", "oom_kill") > 0 { // processes that the limit has killed
			w.oom.Store(true)
		}
	case killed:
		// The limit kills the whole sandbox (memory.oom.group), and no process
		// inside can kill the first one.
		if w.sliceKilled() {
			w.oom.Store(true)
		}
	default:
		select {
		case <-w.events:
		case <-time.After(time.Second):
		}
	}
	return w.oom.Load(), w.pids.Load()
}

// watchOOM records when the memory limit is hit. With cgroup v1 the kernel would then kill
// only one process of the sandbox; with v2 it kills them all.
func (w *Watch) watchOOM() {
	if !w.cgroup.Memory || w.cgroup.V2 && w.cgroup.Driver == host.CgroupFS {
		close(w.events)
		return
	}
	events, err := w.s.OOM()
	if err != nil {
		close(w.events) // it is gone already
		return
	}
	go func() {
		defer close(w.events)
		defer contain.Recover("watching the memory limit of a sandbox", w.fail)
		for range events { // until its last process is gone
			w.oom.Store(true)
			w.killAtLimit()
		}
	}()
}

// watchSlice begins to count out-of-memory kills in the parent of the sandbox's cgroup.
// systemd removes a scope, with the kernel's count, as soon as it is empty; but the counts
// of the parent include it.
func (w *Watch) watchSlice() {
	if !w.cgroup.Memory || !w.cgroup.V2 || w.cgroup.Driver != host.CgroupSystemd {
		return
	}
	m, err := w.s.Cgroup()
	if err != nil {
		return
	}
	file := filepath.Join(filepath.Dir(m.Path("")), "memory.events")
	if b, err := host.ReadKernelFile(file); err == nil {
		w.slice, w.before = file, host.Number(b, "oom_kill")
	}
}

// sliceKilled reports whether the memory limit may have killed the sandbox: the
// slice counts kills since it started, in it or beside it, or the count cannot
// be read.
func (w *Watch) sliceKilled() bool {
	b, err := host.ReadKernelFile(w.slice)
	return err != nil || host.Number(b, "oom_kill") > w.before
}

// notePIDs records whether the cgroup has refused a process. If systemd has already removed
// the scope, this is unknown.
func (w *Watch) notePIDs() {
	if w.cgroup.PIDs && w.count("pids", "max") > 0 {
		w.pids.Store(true)
	}
}

// count reads what a controller of the sandbox's cgroup counts, 0 if the cgroup is gone.
func (w *Watch) count(controller, name string) int64 {
	m, err := w.s.Cgroup()
	if err != nil {
		return 0
	}
	file := controller + ".events"
	if controller == "memory" && !w.cgroup.V2 {
		file = "memory.oom_control"
	}
	b, _ := host.ReadKernelFile(filepath.Join(m.Path(controller), file))
	return host.Number(b, name)
}

// watching is the common part of both watches of a sandbox: a loop in its own goroutine.
type watching struct {
	watch *Watch
	life  context.Context // of the loop
	stop  context.CancelFunc
	ended chan struct{}
}

func (w *Watch) newWatching() *watching {
	life, stop := context.WithCancel(context.Background())
	loop := &watching{w, life, stop, make(chan struct{})}
	w.loops = append(w.loops, loop)
	return loop
}

// pause waits, and reports whether to continue.
func (w *watching) pause(d time.Duration) bool { return await(w, time.After(d)) }

// await waits for an event, such as the end of a rest, and reports whether to continue.
func await[T any](w *watching, event <-chan T) bool {
	select {
	case <-w.life.Done():
		return false
	case <-event:
		return true
	}
}
