package limits

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// An ownProcess is a sandbox whose first process is this one.
type ownProcess struct{ *fakeSandbox }

func (ownProcess) PID() int { return os.Getpid() }

// newOwnProcess returns a sandbox without a cgroup that can be killed more than once.
func newOwnProcess() ownProcess { return ownProcess{&fakeSandbox{killed: make(chan struct{}, 3)}} }

// becomePID1 gives this process the name that pid 1 takes when its sandbox is ready.
func becomePID1(t *testing.T) {
	t.Helper()
	const file = "/proc/self/comm"
	before, err := os.ReadFile(file)
	if err := errors.Join(err, os.WriteFile(file, []byte(spec.PID1Name), 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, before, 0); err != nil {
			t.Error(err)
		}
	})
}

// atEachLook calls f whenever a watch of memory begins to look, until the test has ended.
func atEachLook(t *testing.T, f func()) {
	contain.Inject(t, func(point string) bool {
		if point == "limits: looking" {
			f()
		}
		return false
	})
}

// TestMemoryWatchKeepsTheLimitsThatNoCgroupDoes and no others.
func TestMemoryWatchKeepsTheLimitsThatNoCgroupDoes(t *testing.T) {
	becomePID1(t)
	for name, c := range map[string]struct {
		cgroup    host.Cgroup
		oom, pids bool
	}{
		"no cgroup":    {host.Cgroup{}, true, true},
		"of memory":    {host.Cgroup{Driver: host.CgroupFS, V2: true, Memory: true}, false, true},
		"of processes": {host.Cgroup{Driver: host.CgroupFS, V2: true, PIDs: true}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newOwnProcess()
				w := Start(s, spec.Limits{Memory: 1, PIDs: 1}, host.Host{Cgroup: c.cgroup})
				time.Sleep(3 * watchInterval)
				oom, pids := w.Report(false, false)
				if killed := len(s.killed) > 0; killed != c.oom || oom != c.oom || pids != c.pids {
					t.Errorf("killed %t, memory %t, processes %t", killed, oom, pids)
				}
				for _, f := range []*os.File{w.memory.root, w.memory.proc} {
					if err := f.Close(); !errors.Is(err, os.ErrClosed) {
						t.Errorf("after its end, %s was still open: %v", f.Name(), err)
					}
				}
			})
		})
	}
}

// TestMemoryWatchWaitsForPID1: before, what has its pid is still a part of toolcell.
func TestMemoryWatchWaitsForPID1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOwnProcess()
		w := Start(s, spec.Limits{Memory: 1, PIDs: 1}, host.Host{})
		time.Sleep(time.Second)
		if len(s.killed) > 0 {
			t.Error("killed before it was there")
		}
		becomePID1(t)
		time.Sleep(time.Second)
		if len(s.killed) != 1 {
			t.Error("not killed once it was there")
		}
		w.Stop()
	})
}

// TestWithoutAProcThatOfTheHostIsRead, with the descendants of pid 1 only.
func TestWithoutAProcThatOfTheHostIsRead(t *testing.T) {
	becomePID1(t)
	w := &memoryWatch{pid: os.Getpid()}
	if err := w.open(false); err != nil {
		t.Fatal(err)
	}
	defer w.root.Close()
	child := startChild(t)
	got := w.processes()
	if len(got) == 0 || got[0] != procOf(os.Getpid()) {
		t.Fatalf("processes = %v, want this one first", got)
	}
	// A kernel may have been built without lists of children.
	if known, _ := host.ChildrenOf(os.Getpid()); len(known) > 0 && got[len(got)-1] != procOf(child) {
		t.Errorf("processes = %v, want that of the child %d", got, child)
	}
}

// TestLastLookSeesWhatNoOtherDid, and takes only as long as it must.
func TestLastLookSeesWhatNoOtherDid(t *testing.T) {
	becomePID1(t)
	synctest.Test(t, func(t *testing.T) {
		s := newOwnProcess()
		w := Start(s, spec.Limits{PIDs: 1}, host.Host{})
		synctest.Wait()
		start := time.Now()
		w.Kill()
		if took := time.Since(start); took > 0 {
			t.Errorf("it waited for %s", took)
		}
		if _, pids := w.Report(false, false); !pids || len(s.killed) != 1 {
			t.Errorf("processes %t, killed %d times", pids, len(s.killed))
		}
	})
}

// TestReportWaitsForALook, so that nothing is read of a later sandbox.
func TestReportWaitsForALook(t *testing.T) {
	becomePID1(t)
	synctest.Test(t, func(t *testing.T) {
		looking, goOn, reported := make(chan struct{}), make(chan struct{}), make(chan struct{})
		atEachLook(t, func() {
			looking <- struct{}{}
			<-goOn
		})
		w := Start(newOwnProcess(), spec.Limits{}, host.Host{})
		select {
		case <-looking:
		case <-time.After(time.Minute):
			w.Stop()
			t.Fatal("no look is reported")
		}
		go func() {
			w.Report(false, false)
			close(reported)
		}()
		synctest.Wait()
		select {
		case <-reported:
			t.Error("the watch still looks")
		default:
		}
		close(goOn)
		<-reported
	})
}

// TestSlowLooksAreRare, to leave most of the processor to the sandbox.
func TestSlowLooksAreRare(t *testing.T) {
	becomePID1(t)
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		looks := 0
		atEachLook(t, func() {
			looks++
			time.Sleep(took)
		})
		w := Start(newOwnProcess(), spec.Limits{}, host.Host{})
		time.Sleep(100 * took)
		w.Stop()
		if looks < 15 || looks > 20 {
			t.Errorf("%d looks took %s each, in %s", looks, took, 100*took)
		}
	})
}
