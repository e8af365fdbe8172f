package oci

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestFaultUnderTheLockClosesThePool: nobody knows its groups any more, and runs start
// without it.
func TestFaultUnderTheLockClosesThePool(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	use(t, p, "python", "/a")
	if !use(t, p, "python", "/a") {
		t.Fatal("nothing waits")
	}
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(point string) bool { return point == "pool: locked" })
		w, release := p.Acquire(t.Context(), process("python", "/a"), spec.Host{})
		release()
		if w != nil {
			t.Error("a sandbox of the broken pool is handed out")
		}
	})
	if use(t, p, "python", "/a") {
		t.Error("the broken pool is used again")
	}
	p.containers.WaitForJobs()
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.retired) != 1 {
		t.Errorf("retired templates: %q", log.retired)
	}
}

// TestFaultOfAForkIsAFailedFork: the template goes, and the run starts without it.
func TestFaultOfAForkIsAFailedFork(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	var faults atomic.Int32
	contain.Inject(t, func(point string) bool { return point == "forking a sandbox" && faults.Add(1) == 1 })
	use(t, p, "python", "/a")
	p.containers.WaitForJobs()
	if s := p.State(); s.Making != 0 {
		t.Errorf("%d are being made for ever", s.Making)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.retired) != 1 {
		t.Errorf("retired templates: %q", log.retired)
	}
}

// TestFaultOfATemplateTellsWhoWaits for it.
func TestFaultOfATemplateTellsWhoWaits(t *testing.T) {
	p, _ := newTestPool(t, nil)
	p.SetOptions(PoolOptions{Start: StartFork, Max: 4, Idle: time.Minute})
	contain.Inject(t, func(point string) bool { return point == "starting a template" })
	w, release := p.Acquire(t.Context(), process("python", "/a"), spec.Host{})
	release()
	if w != nil {
		t.Error("there is a fork without a template")
	}
}
