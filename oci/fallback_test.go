package oci

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/fork"
	"github.com/toolcell/toolcell/oci/spec"
)

// A fakeSandbox is one that only waits.
type fakeSandbox struct{ container.Sandbox }

func (fakeSandbox) Destroy() error { return nil }

// A fakeTemplate forks as long as it lives.
type fakeTemplate struct{ make func() *container.Standby }

func (f *fakeTemplate) Fork(bool) (*container.Standby, error) { return f.make(), nil }
func (*fakeTemplate) Count() int                              { return 1 }
func (*fakeTemplate) Memory() int64                           { return 1 << 20 }
func (*fakeTemplate) FailedModules() []string                 { return nil }
func (*fakeTemplate) Gone() bool                              { return false }
func (*fakeTemplate) Retire()                                 {}

var errRefused = &fork.RefusedError{Why: "no forks here"}

// newTestPool makes a pool of fakes, which sends the kind of each on made.
func newTestPool(t *testing.T, forking error) (p *pool, made chan string) {
	t.Helper()
	r, err := container.Open(filepath.Join(t.TempDir(), "run"), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	made = make(chan string, 100)
	standby := func(kind string) *container.Standby {
		made <- kind
		return &container.Standby{Sandbox: fakeSandbox{}, Runtime: r, Alive: func() bool { return true }}
	}
	p = newPool(r, poolSource{
		Template: func(spec.Process, spec.Host) (template, error) {
			return &fakeTemplate{func() *container.Standby { return standby("fork") }}, forking
		},
		MemoryAvailable: func() int64 { return 1 << 40 },
		Container: func(spec.Process, spec.Host) (*container.Standby, []string, error) {
			return standby("container"), nil, nil
		},
	})
	t.Cleanup(func() {
		p.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, made
}

// TestPoolFallsBackToContainers where forking is refused, and only there.
func TestPoolFallsBackToContainers(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"forks":              {nil, "fork"},
		"refused":            {errRefused, "container"},
		"refused, with more": {errors.Join(errors.New("more"), errRefused), "container"},
	} {
		t.Run(name, func(t *testing.T) {
			p, made := newTestPool(t, tt.err)
			p.SetOptions(PoolOptions{Max: 1, Idle: time.Minute})
			p.Prepare(spec.Process{Python: &spec.Python{}}, spec.Host{})
			if got := <-made; got != tt.want {
				t.Errorf("made a %s, want a %s", got, tt.want)
			}
		})
	}
}

// TestAFewForksWait, which cost little; of containers one waits.
func TestAFewForksWait(t *testing.T) {
	for name, tt := range map[string]struct {
		forking   error
		max, want int
	}{
		"forks":      {nil, 15, waitingForks},
		"few at all": {nil, 2, 2},
		"containers": {errRefused, 15, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, made := newTestPool(t, tt.forking)
			p.SetOptions(PoolOptions{Max: tt.max, Idle: time.Minute})
			p.Prepare(spec.Process{Python: &spec.Python{}}, spec.Host{})
			for range tt.want {
				<-made
			}
			p.containers.WaitForJobs()
			if got := p.State().Ready; got != tt.want || len(made) > 0 {
				t.Errorf("%d wait and %d more were made, want %d", got, len(made), tt.want)
			}
			w, release := p.Acquire(t.Context(), spec.Process{Python: &spec.Python{}}, spec.Host{})
			if w == nil || p.State().Ready != tt.want-1 {
				t.Errorf("got %v, and %d wait", w, p.State().Ready)
			}
			release()
			p.containers.WaitForJobs()
			if got := p.State().Ready; got != tt.want {
				t.Errorf("after a run %d wait, want %d", got, tt.want)
			}
		})
	}
}

// TestModulesTrustedAsCodeHaveNoTemplate: what they leave running there would be beside
// the forks of later runs.
func TestModulesTrustedAsCodeHaveNoTemplate(t *testing.T) {
	for _, start := range []string{StartAuto, StartFork} {
		p, made := newTestPool(t, nil)
		p.SetOptions(PoolOptions{Start: start, Max: 4, Idle: time.Minute})
		process := spec.Process{Python: &spec.Python{Preload: []string{"hostile"}, Alone: true}}
		p.Prepare(process, spec.Host{})
		if got := <-made; got != "container" {
			t.Errorf("%s: made a %s", start, got)
		}
		p.containers.WaitForJobs()
		for range 2 {
			w, release := p.Acquire(t.Context(), process, spec.Host{})
			if w == nil {
				t.Errorf("%s: none waits", start)
			}
			release()
			if got := <-made; got != "container" {
				t.Errorf("%s: made a %s", start, got)
			}
			p.containers.WaitForJobs()
		}
		if s := p.State(); s.Template != nil {
			t.Errorf("%s: there is a template", start)
		}
	}
}
