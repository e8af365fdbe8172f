package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/oci/container"
)

// A group's use of templates: it starts one and forks it, or does without if it
// cannot have one.

// awaitTemplate waits until there is a template or there cannot be one.
func (g *group) awaitTemplate(ctx context.Context) {
	for g.wantsForks() && g.template == nil && ctx.Err() == nil {
		g.startTemplate()
		started := g.starting
		if started == nil {
			return // it has failed lately
		}
		g.pool.mu.Unlock()
		select {
		case <-started:
		case <-ctx.Done():
		}
		g.pool.mu.Lock()
	}
}

// wantsForks reports whether the pool should have a template.
func (g *group) wantsForks() bool {
	return g.pool.options.Start != StartContainer && !g.p.Python.Alone && g.refused == nil
}

// fork makes a fork. A template that fails once is not used again.
func (g *group) fork(t Template, now bool) *container.Standby {
	w, err := t.Fork(now)
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	if g.template != t {
		return w
	}
	if err != nil {
		g.template = nil
		g.noteFailure(err)
		t.Retire()
		return nil
	}
	g.failures = 0
	if t.Count() >= g.pool.options.Renew {
		g.startTemplate()
	}
	return w
}

// noteFailure delays the next attempt to start a template, and gives up if
// templates are refused.
func (g *group) noteFailure(err error) {
	g.failures++
	g.retry = time.Now().Add(time.Second << min(g.failures-1, 8))
	var refused interface {
		error
		RefusedModule() (module, why string) // the module that prevents one, if any
	}
	var module, why string
	if errors.As(err, &refused) {
		module, why = refused.RefusedModule()
	}
	switch {
	case module != "" && slices.Contains(g.p.Python.Preload, module):
		// Without that module there can be one.
		python := *g.p.Python
		python.Preload = slices.DeleteFunc(slices.Clone(python.Preload), func(m string) bool { return m == module })
		g.p.Python, g.retry = &python, time.Time{}
		g.addNotes(fmt.Sprintf("module %q is not preloaded: %s", module, why))
		return
	case refused != nil || g.failures >= 5:
		g.refused = err
	}
	if g.pool.options.Start == StartFork {
		g.addNotes(err.Error())
	}
}

// startTemplate begins to start a template, which replaces the present one, if
// any.
func (g *group) startTemplate() {
	if g.starting != nil || g.gone || time.Now().Before(g.retry) {
		return
	}
	started := make(chan struct{})
	g.starting = started
	p, h := g.p, g.h
	g.pool.containers.Go(func() {
		t, err := g.pool.source.Template(p, h)
		g.pool.mu.Lock()
		defer g.pool.mu.Unlock()
		g.starting = nil
		close(started)
		if g.gone {
			if t != nil {
				t.Retire()
			}
			g.fill()
			return
		}
		if err != nil {
			g.noteFailure(err)
			g.fill() // perhaps with containers
			return
		}
		if g.template != nil {
			g.template.Retire()
		}
		g.template = t
		g.addNotes(t.FailedModules()...)
		g.fill()
	})
}
