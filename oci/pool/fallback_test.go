package pool

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
)

// A fakeSandbox is one that only waits.
type fakeSandbox struct{ container.Sandbox }

func (fakeSandbox) Destroy() error { return nil }

// A fakeTemplate forks as long as it lives.
type fakeTemplate struct{ make func() *container.Standby }

func (f *fakeTemplate) Fork(bool) (*container.Standby, error) { return f.make(), nil }
func (*fakeTemplate) Count() int                              { return 1 }
func (*fakeTemplate) FailedModules() []string                 { return nil }
func (*fakeTemplate) Gone() bool                              { return false }
func (*fakeTemplate) Retire()                                 {}

type refusal struct{}

func (refusal) Error() string                       { return "no forks here" }
func (refusal) RefusedModule() (module, why string) { return "", "" }

// TestPoolFallsBackToContainers where forking is refused, and only there.
func TestPoolFallsBackToContainers(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"forks":              {nil, "fork"},
		"refused":            {refusal{}, "container"},
		"refused, with more": {errors.Join(errors.New("more"), refusal{}), "container"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := container.Open(filepath.Join(t.TempDir(), "run"), 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			made := make(chan string, 10)
			standby := func(kind string) *container.Standby {
				made <- kind
				return &container.Standby{Sandbox: fakeSandbox{}, Runtime: r, Alive: func() bool { return true }}
			}
			p := New(r, Source{
				Template: func(spec.Process, spec.Host) (Template, error) {
					return &fakeTemplate{func() *container.Standby { return standby("fork") }}, tt.err
				},
				MemoryAvailable: func() int64 { return 1 << 40 },
				Container: func(spec.Process, spec.Host) (*container.Standby, []string, error) {
					return standby("container"), nil, nil
				},
			})
			defer p.Close()
			p.SetOptions(Options{Max: 1, Idle: time.Minute})
			p.Prepare(spec.Process{Python: &spec.Python{}}, spec.Host{})
			if got := <-made; got != tt.want {
				t.Errorf("made a %s, want a %s", got, tt.want)
			}
		})
	}
}
