package limits

import (
	"errors"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestFaultOfAWatchEndsItsSandbox since nothing else enforces the limit.
func TestFaultOfAWatchEndsItsSandbox(t *testing.T) {
	for work, h := range map[string]host.Host{
		"watching the memory limit of a sandbox":   {Cgroup: host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true}},
		"watching the memory of a sandbox":         {Cgroup: host.Cgroup{Driver: host.CgroupNone}},
		"watching the socket buffers of a sandbox": {Cgroup: host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true}},
	} {
		t.Run(work, func(t *testing.T) {
			contain.Inject(t, func(point string) bool { return point == work })
			s := &fakeSandbox{hits: make(chan struct{}), killed: make(chan struct{}, 1)}
			w := Start(s, spec.Limits{Memory: 1 << 30}, h)
			close(s.hits)
			if w.memory != nil {
				w.memory.stop()
			}
			<-s.killed
			w.Report(false, false)
			var p *contain.PanicError
			if !errors.As(w.Err(), &p) || p.Work != work {
				t.Errorf("error = %v", w.Err())
			}
		})
	}
}

// TestFaultWhileTimeIsUpEndsTheSandbox all the same.
func TestFaultWhileTimeIsUpEndsTheSandbox(t *testing.T) {
	contain.Inject(t, func(point string) bool { return point == "ending a sandbox" })
	s := &fakeSandbox{killed: make(chan struct{}, 2)}
	w := Start(s, spec.Limits{}, host.Host{Cgroup: host.Cgroup{Driver: host.CgroupFS, V2: true, Memory: true, PIDs: true}})
	w.Kill()
	<-s.killed
	if w.Err() == nil {
		t.Error("the panic is not reported")
	}
}
