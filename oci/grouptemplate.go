package oci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/fork"
)

// A group starts a template and forks it, or does without one if templates are refused.

// awaitTemplate waits until there is a template or it is clear that there will be none.
func (g *group) awaitTemplate(ctx context.Context) {
	for g.wantsForks() && g.template == nil && ctx.Err() == nil {
		g.startTemplate()
		started := g.starting
		if started == nil {
			return // it failed recently
		}
		g.await(ctx, started)
	}
}

// await waits without holding the lock.
func (g *group) await(ctx context.Context, started <-chan struct{}) {
	g.pool.mu.Unlock()
	defer g.pool.mu.Lock()
	select {
	case <-started:
	case <-ctx.Done():
	}
}

// wantsForks reports whether the pool should have a template.
func (g *group) wantsForks() bool {
	return g.pool.options.Start != StartContainer && !g.p.Python.Alone && g.refused == nil
}

// fork makes a fork, or returns nil. A template that fails once is not used again.
func (g *group) fork(t template, now bool) *container.Standby {
	var w *container.Standby
	err := contain.Call("forking a sandbox", func() (err error) {
		w, err = t.Fork(now)
		return err
	})
	if err != nil {
		w = nil
	}
	g.pool.locked("counting the forks of a template", func() {
		switch {
		case g.template != t:
		case err != nil:
			g.template = nil
			g.noteFailure(err)
			t.Retire()
		default:
			g.failures = 0
			if t.Count() >= g.pool.options.Renew {
				g.startTemplate()
			}
		}
	})
	return w
}

// noteFailure delays the next attempt to start a template, or gives up if templates are
// refused.
func (g *group) noteFailure(err error) {
	g.failures++
	g.retry = time.Now().Add(time.Second << min(g.failures-1, 8))
	refused, _ := errors.AsType[*fork.RefusedError](err)
	switch {
	case refused != nil && slices.Contains(g.p.Python.Preload, refused.Module):
		// Without that module there can be one.
		python := *g.p.Python
		python.Preload = slices.DeleteFunc(slices.Clone(python.Preload), func(m string) bool { return m == refused.Module })
		g.p.Python, g.retry = &python, time.Time{}
		g.addNotes(fmt.Sprintf("module %q is not preloaded: %s", refused.Module, refused.Why))
		return
	case refused != nil || g.failures >= 5:
		g.refused = err
	}
	if g.pool.options.Start == StartFork {
		g.addNotes(err.Error())
	}
}

// startTemplate begins to start a template, which replaces the current one, if any.
func (g *group) startTemplate() {
	if g.starting != nil || g.gone || time.Now().Before(g.retry) {
		return
	}
	started := make(chan struct{})
	g.starting = started
	p, h := g.p, g.h
	g.pool.containers.Go(func() {
		defer close(started)
		var t template
		err := contain.Call("starting a template", func() (err error) {
			t, err = g.pool.source.Template(p, h)
			return err
		})
		kept := g.pool.locked("keeping a template", func() {
			g.starting = nil
			g.keepTemplate(t, err)
		})
		if !kept && err == nil {
			t.Retire()
		}
	})
}

// keepTemplate takes a template that was started, or notes why there is none.
func (g *group) keepTemplate(t template, err error) {
	switch {
	case g.gone:
		if t != nil && err == nil {
			t.Retire()
		}
	case err != nil:
		g.noteFailure(err) // perhaps containers do
	default:
		if g.template != nil {
			g.template.Retire()
		}
		g.template = t
		g.addNotes(t.FailedModules()...)
	}
	g.fill()
}
