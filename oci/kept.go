package oci

import (
	"slices"

	"github.com/toolcell/toolcell/oci/spec"
)

// A Kept is what a runtime keeps ready for one kind of process.
type Kept struct {
	Process  spec.Process
	Waiting  int   // sandboxes
	Running  int   // runs of it now
	Template bool  // there is a Python that they are forked from
	Memory   int64 // bytes that it holds; 0 if that is not known
	Forks    int   // that were made of it
}

// Kept returns what is kept ready for runs, what was used last first.
func (r *Runtime) Kept() []Kept { return r.pool.kept() }

func (o *pool) kept() (all []Kept) {
	var templates []template
	o.locked("looking at standby sandboxes", func() {
		for _, g := range o.groups {
			all = append(all, Kept{Process: g.p, Waiting: len(g.ready), Running: g.running})
			templates = append(templates, g.template)
		}
	})
	for i, t := range templates { // without the lock: a start may have that of the template
		if t != nil {
			all[i].Template, all[i].Memory, all[i].Forks = true, t.Memory(), t.Count()
		}
	}
	slices.Reverse(all)
	return all
}
