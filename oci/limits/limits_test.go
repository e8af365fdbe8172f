package limits

import (
	"errors"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// A fakeSandbox has a cgroup whose files have these texts.
type fakeSandbox struct {
	counters map[string]string
	hits     chan struct{} // of the memory limit
	kills    int
}

func (s *fakeSandbox) PID() int { return 1 << 30 } // no process has this number
func (s *fakeSandbox) Kill()    { s.kills++ }
func (s *fakeSandbox) Cgroup() (cgroups.Manager, error) {
	return nil, errors.New("none")
}

func (s *fakeSandbox) Counter(controller string) ([]byte, error) {
	text, ok := s.counters[controller]
	if !ok {
		return nil, errors.New("the cgroup is gone")
	}
	return []byte(text), nil
}

func (s *fakeSandbox) OOM() (<-chan struct{}, error) { return s.hits, nil }

func limited(driver string, v2 bool) host.Host {
	return host.Host{Cgroup: host.Cgroup{Driver: driver, V2: v2, Memory: true, PIDs: true, CPU: true}}
}

func TestEndReadsWhatTheCgroupCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		counters  map[string]string
		oom, pids bool
	}{
		"nothing":      {map[string]string{"memory": "oom 0\noom_kill 0\n", "pids": "max 0\n"}, false, false},
		"memory":       {map[string]string{"memory": "oom 1\noom_kill 3\n", "pids": "max 0\n"}, true, false},
		"processes":    {map[string]string{"memory": "oom_kill 0\n", "pids": "max 7\n"}, false, true},
		"both":         {map[string]string{"memory": "oom_kill 1\n", "pids": "max 1\n"}, true, true},
		"a lost group": {nil, false, false},
	} {
		w := Start(&fakeSandbox{counters: tt.counters}, spec.Limits{Memory: 1 << 20, PIDs: 10}, limited(host.CgroupFS, true))
		if oom, pids := w.End(false, true); oom != tt.oom || pids != tt.pids {
			t.Errorf("%s: memory %t, processes %t", name, oom, pids)
		}
	}
}

// TestHitEndsTheWholeSandbox: with cgroup v1 the kernel would kill one process
// and let the others go on.
func TestHitEndsTheWholeSandbox(t *testing.T) {
	s := &fakeSandbox{counters: map[string]string{"pids": "max 0\n", "memory": ""}, hits: make(chan struct{})}
	w := Start(s, spec.Limits{Memory: 1 << 20}, limited(host.CgroupFS, false))
	s.hits <- struct{}{}
	close(s.hits)
	<-w.events
	if oom, _ := w.End(true, true); !oom || s.kills != 1 {
		t.Errorf("memory limit hit: %t, killed %d times", oom, s.kills)
	}
}

// TestScopeThatIsGone: systemd has removed the cgroup with its counts. What was
// killed, and not by us, was killed by the limit.
func TestScopeThatIsGone(t *testing.T) {
	for _, killed := range []bool{false, true} {
		s := &fakeSandbox{hits: make(chan struct{})}
		close(s.hits)
		w := Start(s, spec.Limits{Memory: 1 << 20}, limited(host.CgroupSystemd, true))
		if oom, _ := w.End(killed, false); oom != killed {
			t.Errorf("killed %t: memory limit hit %t", killed, oom)
		}
	}
}

// TestWatchOfASandboxThatHasEnded comes to its end as well.
func TestWatchOfASandboxThatHasEnded(t *testing.T) {
	s := &fakeSandbox{}
	w := Start(s, spec.Limits{Memory: 1 << 20, PIDs: 10}, host.Host{})
	w.Stop()
	if oom, pids := w.End(true, true); oom || pids || s.kills != 1 {
		t.Errorf("memory %t, processes %t, killed %d times", oom, pids, s.kills)
	}
}
