package oci

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
)

// A templateLog records which templates were started and which have retired, by the
// argument of their process.
type templateLog struct {
	mu               sync.Mutex
	started, retired []string
}

type loggedTemplate struct {
	fakeTemplate
	name string
	log  *templateLog
}

func (t *loggedTemplate) Retire() {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.log.retired = append(t.log.retired, t.name)
}

// newLoggedPool makes a pool of fakes whose templates are recorded.
func newLoggedPool(t *testing.T, o PoolOptions) (*pool, *templateLog) {
	t.Helper()
	r, err := container.Open(filepath.Join(t.TempDir(), "run"), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	log := &templateLog{}
	standby := func() *container.Standby {
		return &container.Standby{Sandbox: fakeSandbox{}, Runtime: r, Alive: func() bool { return true }}
	}
	p := newPool(r, poolSource{
		Template: func(p spec.Process, _ spec.Host) (template, error) {
			log.mu.Lock()
			defer log.mu.Unlock()
			log.started = append(log.started, p.Args[0])
			return &loggedTemplate{fakeTemplate{standby}, p.Args[0], log}, nil
		},
		MemoryAvailable: func() int64 { return 1 << 40 },
	})
	p.SetOptions(o)
	t.Cleanup(func() {
		p.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, log
}

func process(name, root string) spec.Process {
	return spec.Process{Args: []string{name}, Root: spec.Root{Dir: root}, Python: &spec.Python{}}
}

// use has a process of a kind run once, and waits until the pool is at rest.
func use(t *testing.T, p *pool, name, root string) (warm bool) {
	t.Helper()
	w, release := p.Acquire(t.Context(), process(name, root), spec.Host{})
	release()
	p.containers.WaitForJobs()
	return w != nil
}

// TestForgottenKindBeginsAnew, and others keep what they have.
func TestForgottenKindBeginsAnew(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	for _, name := range []string{"a", "b", "a", "b"} {
		use(t, p, name, "/1")
	}
	p.Forget(process("a", "/1"), spec.Host{})
	p.containers.WaitForJobs()
	if use(t, p, "a", "/1") {
		t.Error("something of the old kind was left")
	}
	if !use(t, p, "b", "/1") || !use(t, p, "a", "/1") {
		t.Error("nothing waits")
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if want := []string{"a", "b", "a"}; !slices.Equal(log.started, want) || !slices.Equal(log.retired, []string{"a"}) {
		t.Errorf("started %q, retired %q", log.started, log.retired)
	}
}

// TestKindsOfProcessesKeepTheirTemplates: to go from one to another and back starts
// nothing anew.
func TestKindsOfProcessesKeepTheirTemplates(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	for range 3 {
		for _, name := range []string{"a", "b", "c"} {
			use(t, p, name, "/r")
		}
	}
	if !use(t, p, "a", "/r") || !slices.Equal(log.started, []string{"a", "b", "c"}) || log.retired != nil {
		t.Errorf("started %q, retired %q", log.started, log.retired)
	}
}

// TestTheKindUsedLongestAgoLeaves once there are too many.
func TestTheKindUsedLongestAgoLeaves(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 64, Idle: time.Minute})
	for i := range maxGroups {
		use(t, p, fmt.Sprint(i), "/r")
	}
	use(t, p, "0", "/r") // so that 1 is the oldest
	use(t, p, "new", "/r")
	if !slices.Equal(log.retired, []string{"1"}) {
		t.Errorf("retired %q", log.retired)
	}
	if s := p.State(); s.Ready != waitingForks {
		t.Errorf("%d of the new kind wait", s.Ready)
	}
}

// TestAReplacedRootIsNotKept: nothing runs on an image any more once another one is
// used.
func TestAReplacedRootIsNotKept(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	use(t, p, "a", "/old")
	use(t, p, "b", "/old")
	use(t, p, "a", "/new")
	slices.Sort(log.retired)
	if !slices.Equal(log.retired, []string{"a", "b"}) {
		t.Errorf("retired %q", log.retired)
	}
}

// TestStandbysOfOtherKindsGiveWay, so that all together stay within Max.
func TestStandbysOfOtherKindsGiveWay(t *testing.T) {
	p, _ := newLoggedPool(t, PoolOptions{Max: 5, Idle: time.Minute})
	for _, name := range []string{"a", "b", "c"} {
		use(t, p, name, "/r")
		if s := p.State(); s.Ready != waitingForks {
			t.Errorf("%s: %d wait", name, s.Ready)
		}
		p.mu.Lock()
		if n := p.waiting(); n > 5 {
			t.Errorf("%s: %d wait in all", name, n)
		}
		p.mu.Unlock()
	}
}

// TestAnIdleKindLeavesByItself, while others stay.
func TestAnIdleKindLeavesByItself(t *testing.T) {
	p, log := newLoggedPool(t, PoolOptions{Max: 16, Idle: time.Minute})
	use(t, p, "a", "/r")
	use(t, p, "b", "/r")
	p.mu.Lock()
	a := p.groups[0]
	p.mu.Unlock()
	a.releaseIdle()
	if !slices.Equal(log.retired, []string{"a"}) || len(p.groups) != 1 {
		t.Errorf("retired %q, and %d groups are left", log.retired, len(p.groups))
	}
	a.releaseIdle() // its timer may have fired at the same time
	if len(log.retired) != 1 {
		t.Errorf("retired %q", log.retired)
	}
}

// A poolState describes a pool at one moment.
type poolState struct {
	Ready, Making int
	Running       int      // runs at work; demand follows it
	Template      template // nil if there is none
}

// State describes the pool now, and of its groups the most recently used.
func (o *pool) State() poolState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.groups) == 0 {
		return poolState{Running: o.running}
	}
	g := o.groups[len(o.groups)-1]
	return poolState{len(g.ready), g.making, o.running, g.template}
}
