package spec

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// TestTemplateHasTheIDsOfItsForks, and the one capability to give them, where each
// fork can have its own.
func TestTemplateHasTheIDsOfItsForks(t *testing.T) {
	two, one := host.IDMap{Root: 1000, User: 165535}, host.IDMap{Root: 1000, User: -1}
	own := host.IDRange{Start: 164511, Size: 1024}
	full := host.Host{EUID: 1000, InsideUID: 65534, InsideGID: 65534, UIDs: two, GIDs: two, OwnUIDs: own, RootGuard: true}
	for name, tt := range map[string]struct {
		change func(h *Host)
		forks  bool
		code   bool
	}{
		"usual":          {func(*Host) {}, true, true},
		"an old kernel":  {func(h *Host) { h.RootGuard = false }, false, true},
		"a mapped mount": {func(h *Host) { h.Mounts = []ShownMount{{Mapped: true}} }, false, true},
		"one id":         {func(h *Host) { h.UIDs = one }, false, false},
		"one group id":   {func(h *Host) { h.GIDs = one }, false, false},
		"no /proc":       {func(h *Host) { h.NoProc = true }, false, false},
		"root, no /proc": {func(h *Host) { h.NoProc, h.EUID = true, 0 }, false, true},
	} {
		h := Host{Host: full}
		tt.change(&h)
		if got := h.CodeUIDs().Size > 0; got != tt.code {
			t.Errorf("%s: containers have ids of their own: %t", name, got)
		}
		s := New(Process{Template: true}, h, "x")
		last := s.Linux.UIDMappings[len(s.Linux.UIDMappings)-1]
		mapped := last == specs.LinuxIDMapping{ContainerID: FirstForkUID, HostID: 164511, Size: 1024}
		able := slices.Equal(s.Process.Capabilities.Ambient, []string{"CAP_SETUID"})
		if mapped != tt.forks || able != tt.forks {
			t.Errorf("%s: ids %+v, capabilities %+v", name, last, s.Process.Capabilities)
		}
		if s := New(Process{}, h, "x"); len(s.Process.Capabilities.Ambient) > 0 || len(s.Linux.UIDMappings) > 2 {
			t.Errorf("%s: a container has %+v and %+v", name, s.Process.Capabilities, s.Linux.UIDMappings)
		}
	}
}

// TestCodeHasTheIDGiven, whichever of the two the code's is.
func TestCodeHasTheIDGiven(t *testing.T) {
	two := host.IDMap{Root: 1, User: 2}
	h := Host{UIDs: two, GIDs: two}
	if got := h.WithUID(7).UIDs; got != (host.IDMap{Root: 1, User: 7}) {
		t.Errorf("got %+v", got)
	}
	h.NoProc = true // the process starts as container root
	if got := h.WithUID(7).UIDs; got != (host.IDMap{Root: 7, User: 2}) {
		t.Errorf("without /proc: %+v", got)
	}
}

func TestNewHostKnowsItsMountsAndCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		cgroup host.Cgroup
		counts bool
	}{
		"no cgroup": {host.Cgroup{}, false},
		"cgroup v2": {host.Cgroup{Driver: host.CgroupFS, V2: true, Memory: true, PIDs: true, CPU: true}, true},
	} {
		h, err := NewHost(host.Host{Cgroup: tt.cgroup}, []Mount{{"/", "/mnt", false}})
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Mounts) != 1 || !h.Mounts[0].Dir || h.Mounts[0].Target != "/mnt" {
			t.Errorf("%s: mounts %+v", name, h.Mounts)
		}
		if h.Seccomp == nil {
			t.Fatalf("%s: no filter", name)
		}
		for _, call := range []string{"memfd_create", "sched_setaffinity", "timer_create"} {
			if _, reaches := answer(h.Seccomp, call); reaches != tt.counts {
				t.Errorf("%s: %s reaches the kernel: %t", name, call, reaches)
			}
		}
	}
}
