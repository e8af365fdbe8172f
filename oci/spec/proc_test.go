package spec

import (
	"slices"
	"testing"
)

// TestUnknownProcIsMasked: of what a kernel or a driver puts into /proc a sandbox sees
// only what is known not to tell of the host and of other sandboxes.
func TestUnknownProcIsMasked(t *testing.T) {
	got := MaskedPaths(Host{ProcNames: []string{"cpuinfo", "meminfo", "self", "spl", "irq", "allocinfo", "sys"}})
	for path, want := range map[string]int{
		"/proc/cpuinfo": 0, "/proc/meminfo": 0, "/proc/self": 0, "/proc/sys": 0,
		"/proc/spl": 1, "/proc/allocinfo": 1, "/proc/irq": 1, "/proc/cgroups": 1, "/proc/key-users": 1, "/proc/fs": 1,
	} {
		n := 0
		for _, masked := range got {
			if masked == path {
				n++
			}
		}
		if n != want {
			t.Errorf("%s is masked %d times, want %d", path, n, want)
		}
	}
	for _, file := range CoveredFiles {
		if slices.Contains(got, file) {
			t.Errorf("%s is masked, and has something else to show", file)
		}
	}
}
