package oci

import (
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/oci/host"
)

// counterOf names the file in which a controller of a cgroup counts what it did.
func counterOf(controller string, v2 bool) string {
	if controller == "memory" && !v2 {
		return "memory.oom_control"
	}
	return controller + ".events"
}

// readCounter reads the file in which a controller of a cgroup counts.
func readCounter(m cgroups.Manager, controller string) ([]byte, error) {
	return host.ReadKernelFile(counterPath(m, controller))
}

func counterPath(m cgroups.Manager, controller string) string {
	return filepath.Join(m.Path(controller), counterOf(controller, cgroups.IsCgroup2UnifiedMode()))
}
