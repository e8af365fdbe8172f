package limits

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// newV1Sandbox returns a sandbox of cgroup v1 whose socket buffers hold this much; nothing
// counts them if there is no text.
func newV1Sandbox(t *testing.T, buffers string) *fakeSandbox {
	t.Helper()
	s := &fakeSandbox{cgroup: t.TempDir(), hits: make(chan struct{}), killed: make(chan struct{}, 3)}
	close(s.hits)
	if buffers != "" {
		writeCount(t, s.cgroup, "memory.kmem.tcp.usage_in_bytes", buffers)
	}
	return s
}

// TestSocketWatchEndsWithWhatItReads, and does not call this a fault.
func TestSocketWatchEndsWithWhatItReads(t *testing.T) {
	for name, hasCgroup := range map[string]bool{"no cgroup": false, "no count": true} {
		synctest.Test(t, func(t *testing.T) {
			s := newV1Sandbox(t, "")
			if !hasCgroup {
				s.cgroup = ""
			}
			w := Start(s, spec.Limits{}, host.Host{Cgroup: cgroupV1})
			select {
			case <-w.loops[0].ended:
			case <-time.After(time.Minute):
				t.Errorf("%s: it looks on", name)
				w.Stop()
			}
			if len(s.killed) > 0 || w.Err() != nil {
				t.Errorf("%s: killed %d times, error %v", name, len(s.killed), w.Err())
			}
		})
	}
}

// TestSocketsOfAnEndedSandboxAreNotRead: its end has been told.
func TestSocketsOfAnEndedSandboxAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newV1Sandbox(t, "9999999999999999\n")
		w := Start(s, spec.Limits{}, host.Host{Cgroup: cgroupV1})
		if oom, _ := w.Report(false, false); oom || len(s.killed) > 0 {
			t.Errorf("memory %t, killed %d times", oom, len(s.killed))
		}
	})
}

// TestEachWatchLooksOnceAtWhatStandsStill, and ends while it rests.
func TestEachWatchLooksOnceAtWhatStandsStill(t *testing.T) {
	becomePID1(t)
	for name, cgroup := range map[string]host.Cgroup{"of memory": {}, "of sockets": cgroupV1} {
		synctest.Test(t, func(t *testing.T) {
			w := Start(ownProcess{newV1Sandbox(t, "0\n")}, spec.Limits{}, host.Host{Cgroup: cgroup})
			for range 2 {
				var looks atomic.Int64
				w.Hold(func() bool { looks.Add(1); return true })
				time.Sleep(time.Second)
				if n := looks.Load(); n != 1 {
					t.Errorf("%s: %d looks", name, n)
				}
				w.Resume()
			}
			w.Hold(func() bool { return true })
			time.Sleep(time.Second)
			w.Report(false, false)
		})
	}
}
