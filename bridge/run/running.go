package run

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/oci/limits"
)

// maxShown bounds what is shown of a stream while its run goes on, in bytes.
const maxShown = 16 << 10

// A Running is what is known of a run while it goes on.
type Running struct {
	Stdout, Stderr Printed      // nothing if nothing is recorded
	Private        bool         // its code may have what was read from private servers
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
	now = Running{Stdout: r.stdout.recent(r.record), Stderr: r.stderr.recent(r.record), Used: r.usedSoFar()}
	now.Private = r.keepingNow().Private // last: what was printed until then may have what was read until then
	return now, true
}

// errStoppedAsRun is consent.ErrStopped of a run that the user has stopped as such, and not in answer to a
// question.
var errStoppedAsRun = fmt.Errorf("%w", consent.ErrStopped)

// Stop ends a run since the user wants it, which also denies what it asks: by is how the user says so.
// Its session goes on. ok is false if no run goes on with this ID.
func (rs *Runs) Stop(id, by string) (ok bool) {
	r := rs.running(id)
	if r == nil {
		return false
	}
	why := errStoppedAsRun
	for _, q := range rs.queue.Questions() {
		if q.Run == id && q.State == consent.Pending && rs.queue.Decide(q.ID, consent.Answer{Choice: consent.Stop, By: by}) == nil {
			why = consent.ErrStopped
		}
	}
	r.stop(why)
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
	r.entered = &entered{in.sandboxNow, in.used, r.gate}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entered, r.keeping = nil, r.keeping.And(r.gate.Keeping())
	}
}

// An entered is the sandbox of a run, and what the runs of its session have taken there before.
type entered struct {
	sandbox func() Sandbox
	before  limits.Usage
	gate    *gate.Gate
}

// keepingNow is what the record may keep of what the run has by now.
func (r *Run) keepingNow() gate.Keeping {
	r.mu.Lock()
	k, e := r.keeping, r.entered
	r.mu.Unlock()
	if e != nil {
		k = k.And(e.gate.Keeping())
	}
	return k
}

// keepingBefore is what the record may keep of what the session of the run has by now, or will have when the
// runs before this one have ended.
func (r *Run) keepingBefore() (k gate.Keeping) {
	if r.req.Session == "" {
		return k
	}
	r.runs.mu.Lock()
	others := slices.Collect(maps.Values(r.runs.active))
	r.runs.mu.Unlock()
	for _, other := range others {
		if other != r && other.req.Session == r.req.Session {
			k = k.And(other.keepingNow())
		}
	}
	return k.And(r.runs.sessions.keepingOf(r.req.Session)) // last: one of the others may end meanwhile
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
