package run

import (
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/oci/limits"
)

// maxShown bounds what is shown of a stream while its run goes on, in bytes.
const maxShown = 16 << 10

// A Running is what is known of a run while it goes on.
type Running struct {
	Stdout, Stderr Printed      // nothing if nothing is recorded
	Used           limits.Usage // by its code so far
}

// A Printed is the end of what code has printed, without secrets.
type Printed struct {
	Text   string
	Before int64 // bytes that are left out before it
}

// Running returns what is known of a run; ok is false if none goes on with this ID.
func (rs *Runs) Running(id string) (now Running, ok bool) {
	r := rs.running(id)
	if r == nil {
		return now, false
	}
	return Running{r.stdout.recent(r.record), r.stderr.recent(r.record), r.usedSoFar()}, true
}

// Stop ends a run since the user wants it, which also denies what it asks: by is how the user says so.
// Its session goes on. ok is false if no run goes on with this ID.
func (rs *Runs) Stop(id, by string) (ok bool) {
	r := rs.running(id)
	if r == nil {
		return false
	}
	for _, q := range rs.queue.Questions() {
		if q.Run == id && q.State == consent.Pending {
			_ = rs.queue.Decide(q.ID, consent.Answer{Choice: consent.Stop, By: by}) // unless it was answered just now
		}
	}
	r.stop(consent.ErrStopped)
	return true
}

// running returns the run that goes on with an ID, nil if none does.
func (rs *Runs) running(id string) *Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.active[id]
}

// add notes that a run goes on, until ended is called.
func (rs *Runs) add(r *Run) (ended func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.active[r.ID] = r
	return func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.active, r.ID)
	}
}

// enter notes which interpreter has the code of the run, until leave is called.
func (r *Run) enter(in *interpreter) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entered = &entered{in.sandboxNow, in.used}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entered = nil
	}
}

// An entered is the sandbox of a run, and what the runs of its session have taken there before.
type entered struct {
	sandbox func() Sandbox
	before  limits.Usage
}

// usedSoFar returns what the code of the run has taken by now.
func (r *Run) usedSoFar() (u limits.Usage) {
	r.mu.Lock()
	e := r.entered
	r.mu.Unlock()
	if e == nil {
		return u
	}
	if sb := e.sandbox(); sb != nil {
		u = sb.Usage()
		u.CPU = max(0, u.CPU-e.before.CPU)
	}
	return u
}
