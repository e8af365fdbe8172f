package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/oci/container"
)

// The pool's use of templates: it starts one and forks it, or does without if it
// cannot have one.

// awaitTemplate waits until there is a template or there cannot be one.
func (o *Pool) awaitTemplate(ctx context.Context) {
	for o.wantsForks() && o.template == nil && ctx.Err() == nil {
		o.startTemplate()
		started := o.starting
		if started == nil {
			return // it has failed lately
		}
		o.mu.Unlock()
		select {
		case <-started:
		case <-ctx.Done():
		}
		o.mu.Lock()
	}
}

// wantsForks reports whether the pool should have a template.
func (o *Pool) wantsForks() bool {
	return o.options.Start != StartContainer && o.refused == nil
}

// fork makes a fork. A template that fails once is not used again.
func (o *Pool) fork(t Template, now bool) *container.Standby {
	w, err := t.Fork(now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.template != t {
		return w
	}
	if err != nil {
		o.template = nil
		o.noteFailure(err)
		t.Retire()
		return nil
	}
	o.failures = 0
	if t.Count() >= o.options.Renew {
		o.startTemplate()
	}
	return w
}

// noteFailure delays the next attempt to start a template, and gives up if
// templates are refused.
func (o *Pool) noteFailure(err error) {
	o.failures++
	o.retry = time.Now().Add(time.Second << min(o.failures-1, 8))
	var refused interface {
		error
		RefusedModule() (module, why string) // the module that prevents one, if any
	}
	var module, why string
	if errors.As(err, &refused) {
		module, why = refused.RefusedModule()
	}
	switch {
	case module != "" && slices.Contains(o.p.Python.Preload, module):
		// Without that module there can be one.
		python := *o.p.Python
		python.Preload = slices.DeleteFunc(slices.Clone(python.Preload), func(m string) bool { return m == module })
		o.p.Python, o.retry = &python, time.Time{}
		o.addNotes(fmt.Sprintf("module %q is not preloaded: %s", module, why))
		return
	case refused != nil || o.failures >= 5:
		o.refused = err
	}
	if o.options.Start == StartFork {
		o.addNotes(err.Error())
	}
}

// startTemplate begins to start a template, which replaces the present one, if
// any.
func (o *Pool) startTemplate() {
	if o.starting != nil || o.closed || time.Now().Before(o.retry) {
		return
	}
	started := make(chan struct{})
	o.starting = started
	key, p, h := o.key, o.p, o.h
	o.containers.Go(func() {
		t, err := o.source.Template(p, h)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.starting = nil
		close(started)
		if o.closed || key != o.key {
			if t != nil {
				t.Retire()
			}
			o.fill()
			return
		}
		if err != nil {
			o.noteFailure(err)
			o.fill() // perhaps with containers
			return
		}
		if o.template != nil {
			o.template.Retire()
		}
		o.template = t
		o.addNotes(t.FailedModules()...)
		o.fill()
	})
}
