package oci

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

func TestChooseGoesAroundTheProcessorsThereAre(t *testing.T) {
	var all unix.CPUSet
	for _, cpu := range []int{1, 4, 5} {
		all.Set(cpu)
	}
	for _, tt := range []struct {
		first, want int
		chosen      string
	}{
		{0, 1, "[1]"},
		{1, 1, "[4]"},
		{2, 2, "[1 5]"},
		{3, 1, "[1]"},
	} {
		set := choose(&all, tt.first, tt.want)
		var got []int
		for cpu := range 8 {
			if set.IsSet(cpu) {
				got = append(got, cpu)
			}
		}
		if fmt.Sprint(got) != tt.chosen {
			t.Errorf("choose(%d, %d) = %v, want %s", tt.first, tt.want, got, tt.chosen)
		}
	}
}

func TestCountOf(t *testing.T) {
	const status = "Name:\tVmRSS: 9 kB\nVmPTE:\t      44 kB\nVmRSS:\t    1234 kB\nThreads:\tmany\n"
	for name, want := range map[string]int64{"VmRSS": 1234, "VmPTE": 44, "Threads": 0, "FDSize": 0} {
		if got := host.CountOf([]byte(status), name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	if got := host.CountOf([]byte("max 3\n"), "max"); got != 3 {
		t.Errorf("max = %d, want 3", got)
	}
}

func TestIsolationNamesWhatIsLacking(t *testing.T) {
	two, one := host.IDMap{Root: 1, User: 2}, host.IDMap{Root: 1, User: -1}
	all := host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true, CPU: true}
	noCPU := all
	noCPU.CPU = false
	l := spec.Limits{Memory: 1, PIDs: 1, CPUs: 1}
	for want, h := range map[string]host.Host{
		"":                              {UIDs: two, GIDs: two, Cgroup: all},
		"one-id":                        {UIDs: one, GIDs: one, Cgroup: all},
		"watched-limits":                {UIDs: two, GIDs: two, Cgroup: noCPU},
		"one-id watched-limits no-proc": {UIDs: one, GIDs: two, NoProc: true},
		"no-proc":                       {UIDs: two, GIDs: two, Cgroup: all, NoProc: true},
	} {
		if got := isolation(h, l); got != want {
			t.Errorf("isolation = %q, want %q", got, want)
		}
		if words := strings.Join(missing(h, l), " "); (words == "") != (strings.ReplaceAll(want, "one-id", "") == "") {
			t.Errorf("%s: missing says %q", want, words)
		}
	}
	if got := isolation(host.Host{UIDs: two, GIDs: two}, spec.Limits{}); got != "" {
		t.Errorf("without limits nothing is watched, got %q", got)
	}
}
