package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// A fakeSandbox has a cgroup with counters and nothing else.
type fakeSandbox struct {
	cgroup string
	hits   chan struct{}
	killed chan struct{}
}

func (f *fakeSandbox) PID() int                      { return 0 }
func (f *fakeSandbox) Kill()                         { f.killed <- struct{}{} }
func (f *fakeSandbox) OOM() (<-chan struct{}, error) { return f.hits, nil }
func (f *fakeSandbox) Cgroup() (cgroups.Manager, error) {
	if f.cgroup == "" {
		return nil, errors.New("no cgroup")
	}
	return fakeCgroup{dir: f.cgroup}, nil
}

// A fakeCgroup has the same folder for all controllers.
type fakeCgroup struct {
	cgroups.Manager
	dir string
}

func (f fakeCgroup) Path(string) string { return f.dir }

func TestEndTellsWhichLimitsWereHit(t *testing.T) {
	for name, tt := range map[string]struct {
		counters  map[string]string
		oom, pids bool
	}{
		"none":      {map[string]string{"memory": "oom_kill 0\n", "pids": "max 0\n"}, false, false},
		"memory":    {map[string]string{"memory": "low 0\noom_kill 2\n", "pids": "max 0\n"}, true, false},
		"processes": {map[string]string{"memory": "oom_kill 0\n", "pids": "max 7\n"}, false, true},
		"unknown":   {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := host.Host{Cgroup: host.Cgroup{Driver: host.CgroupFS, V2: true, Memory: true, PIDs: true}}
			s := &fakeSandbox{cgroup: t.TempDir()}
			for controller, text := range tt.counters {
				if err := os.WriteFile(filepath.Join(s.cgroup, controller+".events"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w := Start(s, spec.Limits{Memory: 1 << 20, PIDs: 8}, h)
			if oom, pids := w.Report(false, true); oom != tt.oom || pids != tt.pids {
				t.Errorf("memory %t, processes %t; want %t, %t", oom, pids, tt.oom, tt.pids)
			}
		})
	}
}

// TestSocketBuffersEndASandbox with cgroup v1, which counts them apart.
func TestSocketBuffersEndASandbox(t *testing.T) {
	limits := spec.Limits{Memory: 1 << 30}
	s := &fakeSandbox{cgroup: t.TempDir(), hits: make(chan struct{}), killed: make(chan struct{}, 1)}
	count := func(n int64) {
		t.Helper()
		temp := filepath.Join(s.cgroup, "new")
		err := os.WriteFile(temp, fmt.Appendln(nil, n), 0o600)
		if err := errors.Join(err, os.Rename(temp, filepath.Join(s.cgroup, "memory.kmem.tcp.usage_in_bytes"))); err != nil {
			t.Fatal(err)
		}
	}
	count(2 * limits.SocketBuffers())
	w := Start(s, limits, host.Host{Cgroup: host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true}})
	time.Sleep(3 * socketInterval)
	if len(s.killed) > 0 {
		t.Error("as many as there may be")
	}
	count(2*limits.SocketBuffers() + 1)
	select {
	case <-s.killed:
	case <-time.After(2 * time.Minute):
		t.Error("more than there may be")
	}
	close(s.hits)
	if oom, _ := w.Report(false, false); !oom {
		t.Error("the limit on memory was not noted")
	}
}

// TestOOMEndsTheWholeSandbox with cgroup v1, where the kernel would kill one
// process of it.
func TestOOMEndsTheWholeSandbox(t *testing.T) {
	s := &fakeSandbox{hits: make(chan struct{}, 1), killed: make(chan struct{}, 1)}
	h := host.Host{Cgroup: host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true}}
	w := Start(s, spec.Limits{Memory: 1 << 20}, h)
	s.hits <- struct{}{}
	<-s.killed
	close(s.hits)
	if oom, _ := w.Report(false, false); !oom {
		t.Error("the limit on memory was not noted")
	}
}
