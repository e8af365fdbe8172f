package doctor

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

func TestIsolationNamesWhatIsLacking(t *testing.T) {
	two, one := host.IDMap{Root: 1, User: 2}, host.IDMap{Root: 1, User: -1}
	all := host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true, CPU: true}
	noCPU := all
	noCPU.CPU = false
	l := spec.Limits{Memory: 1, PIDs: 1, CPUs: 1}
	for want, h := range map[string]host.Host{
		"": {UIDs: two, GIDs: two, Cgroup: all},
		"all sandboxes share one user ID (one-id)":                     {UIDs: one, GIDs: one, Cgroup: all},
		"limits are kept by watching, not by cgroups (watched-limits)": {UIDs: two, GIDs: two, Cgroup: noCPU},
		"all sandboxes share one user ID (one-id); limits are kept by watching, not by cgroups (watched-limits); there is no /proc (no-proc)": {UIDs: one, GIDs: two, NoProc: true},
		"there is no /proc (no-proc)": {UIDs: two, GIDs: two, Cgroup: all, NoProc: true},
	} {
		if got := Isolation(h, l); got != want {
			t.Errorf("isolation = %q, want %q", got, want)
		}
		if words := strings.Join(Missing(h, l), " "); (words == "") != (strings.ReplaceAll(want, "all sandboxes share one user ID (one-id)", "") == "") {
			t.Errorf("%s: missing says %q", want, words)
		}
	}
	if got := Isolation(host.Host{UIDs: two, GIDs: two}, spec.Limits{}); got != "" {
		t.Errorf("without limits nothing is watched, got %q", got)
	}
}
