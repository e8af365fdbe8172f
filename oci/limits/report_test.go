package limits

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

var (
	cgroupFS = host.Cgroup{Driver: host.CgroupFS, V2: true, Memory: true, PIDs: true}
	cgroupV1 = host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true}
	systemd  = host.Cgroup{Driver: host.CgroupSystemd, V2: true, Memory: true, PIDs: true}
)

// writeCount writes a counter of a cgroup.
func writeCount(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOutOfMemoryIsKnown from what remains of the cgroup, and at once.
func TestOutOfMemoryIsKnown(t *testing.T) {
	const gone, none = "", "none"
	for name, c := range map[string]struct {
		cgroup        host.Cgroup
		file, text    string // of the sandbox's cgroup
		before, after string // memory.events of that above it
		killed, there bool
		oom           bool
	}{
		"no cgroup, killed by another": {cgroup: host.Cgroup{}, file: gone, killed: true},
		"cgroupfs, killed by another":  {cgroup: cgroupFS, file: "memory.events", text: "oom_kill 0\n", killed: true},
		"cgroupfs, killed by the limit": {
			cgroup: cgroupFS, file: "memory.events", text: "oom_kill 2\n", killed: true, oom: true,
		},
		"v1, killed by the limit": {
			cgroup: cgroupV1, file: "memory.oom_control", text: "under_oom 0\noom_kill 2\n", killed: true, oom: true,
		},
		"systemd, still there":         {cgroup: systemd, file: "memory.events", text: "oom_kill 2\n", there: true, oom: true},
		"systemd, killed by the limit": {cgroup: systemd, file: none, before: "3", after: "4", killed: true, oom: true},
		"systemd, killed by another":   {cgroup: systemd, file: none, before: "3", after: "3", killed: true},
		"systemd, not killed":          {cgroup: systemd, file: none, before: "3", after: "4"},
		"systemd, killed, not counted": {cgroup: systemd, file: none, killed: true, oom: true},
		"systemd, killed at the start": {cgroup: systemd, file: gone, killed: true, oom: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slice := t.TempDir()
				s := &fakeSandbox{hits: make(chan struct{})}
				close(s.hits)
				if c.file != gone {
					s.cgroup = filepath.Join(slice, "scope")
					if err := os.Mkdir(s.cgroup, 0o700); err != nil {
						t.Fatal(err)
					}
					writeCount(t, s.cgroup, c.file, c.text)
				}
				if c.before != "" {
					writeCount(t, slice, "memory.events", "oom_kill "+c.before+"\n")
				}
				w := Start(s, spec.Limits{Memory: 1 << 20, PIDs: 8}, host.Host{Cgroup: c.cgroup})
				if c.after != "" {
					writeCount(t, slice, "memory.events", "oom_kill "+c.after+"\n")
				}
				start := time.Now()
				if oom, pids := w.Report(c.killed, c.there); oom != c.oom || pids {
					t.Errorf("memory %t, processes %t", oom, pids)
				}
				if took := time.Since(start); took > 0 {
					t.Errorf("it waited for %s", took)
				}
			})
		})
	}
}

// TestKernelEndsTheWholeSandboxItself with cgroup v2; without a cgroup it sends no events.
func TestKernelEndsTheWholeSandboxItself(t *testing.T) {
	for _, cgroup := range []host.Cgroup{cgroupFS, {V2: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeSandbox{hits: make(chan struct{}, 1), killed: make(chan struct{}, 1)}
			s.hits <- struct{}{}
			w := Start(s, spec.Limits{}, host.Host{Cgroup: cgroup})
			synctest.Wait()
			if oom, _ := w.Report(false, false); oom || len(s.killed) > 0 {
				t.Errorf("%v: killed for an event", cgroup)
			}
			close(s.hits)
		})
	}
}

// A goneSandbox has ended before it could be asked for its events.
type goneSandbox struct{ fakeSandbox }

func (*goneSandbox) OOM() (<-chan struct{}, error) { return nil, errors.New("no such cgroup") }

// TestEventsOfAGoneCgroupAreNotAwaited since none come.
func TestEventsOfAGoneCgroupAreNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(&goneSandbox{}, spec.Limits{}, host.Host{Cgroup: systemd})
		start := time.Now()
		if oom, pids := w.Report(false, false); oom || pids || time.Since(start) > 0 {
			t.Errorf("memory %t, processes %t after %s", oom, pids, time.Since(start))
		}
	})
}

// A scope is removed by systemd, with its counts, as soon as nothing is left in it.
type scope struct{ *fakeSandbox }

func (s scope) Kill() {
	s.fakeSandbox.Kill()
	s.cgroup = ""
}

// TestRefusedProcessesAreNotedBeforeTheKill, after which systemd may have removed the count.
func TestRefusedProcessesAreNotedBeforeTheKill(t *testing.T) {
	s := scope{&fakeSandbox{cgroup: t.TempDir(), hits: make(chan struct{}), killed: make(chan struct{}, 1)}}
	writeCount(t, s.cgroup, "pids.events", "max 7\n")
	close(s.hits)
	w := Start(s, spec.Limits{}, host.Host{Cgroup: systemd})
	w.Kill()
	if _, pids := w.Report(false, false); !pids || len(s.killed) != 1 || w.Err() != nil {
		t.Errorf("processes %t, killed %d times, error %v", pids, len(s.killed), w.Err())
	}
}
