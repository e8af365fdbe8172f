package fork

import (
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// script starts Python programs ahead of their use. It is the inside
// part of the files about templates and forks.
//
//go:embed fork.py
var script []byte

// scriptPath is where a sandbox sees it.
const scriptPath = spec.OwnDir + "/fork.py"

// Time limits for steps that take milliseconds on an idle host.
const (
	startTimeout = 60 * time.Second // modules of any size are imported
	forkTimeout  = 10 * time.Second
)

// A Template is a sandbox that runs only our own program and the modules that
// the user wants preloaded. Sandboxes are forked from it.
type Template struct {
	*zygote
	containers *container.Runtime
	p          spec.Process

	cgroups *cgroupMaker // nil where there are none

	requests sync.Mutex
	made     int // forks so far; requests guards it

	mu      sync.Mutex
	live    int // forks that still exist: they end with the template
	retired bool
}

// A RefusedError says that this Python, or a module, cannot be used in a
// template; trying again would not help.
type RefusedError struct {
	Why    string
	Module string // that prevents a template, "" if none does
}

func (e *RefusedError) Error() string { return "forking from a template: " + e.Why }

// NewTemplate starts a template for p.
func NewTemplate(e *container.Runtime, p spec.Process, h spec.Host) (*Template, error) {
	if h.NoProc {
		return nil, &RefusedError{Why: "no /proc can be mounted here"}
	}
	s, err := startProgram(e, p, h, true)
	if err != nil {
		return nil, err
	}
	made, err := newCgroupMaker(p, s.h)
	if err != nil {
		s.destroy()
		return nil, fmt.Errorf("preparing the cgroups of forks: %w", err)
	}
	return &Template{zygote: s, containers: e, p: p, cgroups: made}, nil
}

// FailedModules gives notes about the modules that could not be preloaded.
func (t *Template) FailedModules() []string { return t.notes }

// Ended is closed once it has ended.
func (t *Template) Ended() <-chan struct{} { return t.ended }

// Count returns how many forks were made from it.
func (t *Template) Count() int {
	t.requests.Lock()
	defer t.requests.Unlock()
	return t.made
}

// Memory returns how much its program holds, in bytes; 0 if that cannot be seen. Forks share most of it.
func (t *Template) Memory() (bytes int64) {
	programs, _ := host.ChildrenOf(t.PID()) // pid 1 has one
	for _, pid := range programs {
		status, _ := host.ReadKernelFile(fmt.Sprintf("/proc/%d/status", pid))
		bytes += host.Number(status, "VmRSS") << 10
	}
	return bytes
}

// Retire ends the template once its last fork is gone.
func (t *Template) Retire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return
	}
	t.retired = true
	if t.live == 0 {
		t.destroyLater()
	}
}

// addFork counts one more live fork, unless the template has ended or been
// retired. The template stays until removeFork is called for it.
func (t *Template) addFork() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired || t.Gone() {
		return false
	}
	t.live++
	return true
}

// removeFork counts one live fork less. The last call ends a retired template.
func (t *Template) removeFork() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live--
	if t.retired && t.live == 0 {
		t.destroyLater()
	}
}

// destroyLater ends the template in the background.
func (t *Template) destroyLater() {
	t.containers.Go(func() {
		t.destroy()
		if t.cgroups != nil {
			t.cgroups.removeNotes()
		}
	})
}

// NewStandby starts a container in which the program waits, and notes which
// modules could not be preloaded.
func NewStandby(e *container.Runtime, p spec.Process, h spec.Host) (_ *container.Standby, notes []string, err error) {
	s, err := startProgram(e, p, h, false)
	if err != nil {
		return nil, nil, err
	}
	defer e.AtStop(s.Kill)()
	_ = s.Conn.SetReadDeadline(time.Now().Add(forkTimeout))
	if err := awaitByte(s.Conn, 'w'); err != nil {
		s.Workspace.Close()
		return nil, nil, fmt.Errorf("waiting for the program: %w: %s", err, s.destroy())
	}
	_ = s.Conn.SetReadDeadline(time.Time{})
	started := s.Started
	started.Sandbox = s // which watches for its end
	return &container.Standby{Started: started, Runtime: e, Alive: func() bool { return !s.Gone() }}, s.notes, nil
}

// Destroy implements container.Sandbox.
func (s *zygote) Destroy() error { s.destroy(); return nil }

// Wait implements container.Sandbox.
func (s *zygote) Wait() (container.Exit, error) {
	<-s.ended
	return s.exit, s.err
}
