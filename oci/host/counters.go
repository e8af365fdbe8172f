package host

import (
	"path/filepath"

	"github.com/opencontainers/cgroups"
)

// counterOf names the file in which a controller of a cgroup counts what it did.
func counterOf(controller string, v2 bool) string {
	if controller == "memory" && !v2 {
		return "memory.oom_control"
	}
	return controller + ".events"
}

// ReadCounter reads the file in which a controller of a cgroup counts.
func ReadCounter(m cgroups.Manager, controller string) ([]byte, error) {
	return ReadKernelFile(CounterPath(m, controller))
}

// CounterPath returns the file in which the kernel counts for a controller.
func CounterPath(m cgroups.Manager, controller string) string {
	return filepath.Join(m.Path(controller), counterOf(controller, cgroups.IsCgroup2UnifiedMode()))
}
