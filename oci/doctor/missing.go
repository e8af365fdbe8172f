package doctor

import (
	"strings"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// Isolation describes how a sandbox on h differs from a full one, with the names in
// docs/security.md; it is empty if there is no difference.
func Isolation(h host.Host, l spec.Limits) string {
	var out []string
	if h.UIDs.User < 0 || h.GIDs.User < 0 {
		out = append(out, "all sandboxes share one user ID (one-id)")
	}
	if l.Memory > 0 && !h.Cgroup.Memory || l.PIDs > 0 && !h.Cgroup.PIDs || l.CPUs > 0 && !h.Cgroup.CPU {
		out = append(out, "limits are kept by watching, not by cgroups (watched-limits)")
	}
	if h.NoProc {
		out = append(out, "there is no /proc (no-proc)")
	}
	return strings.Join(out, "; ")
}

// Missing lists what h lacks, each with its consequences.
func Missing(h host.Host, l spec.Limits) []string {
	var out []string
	c := h.Cgroup
	why := c.Why
	if why == "" {
		why = "its cgroup controller is not delegated"
	}
	if l.Memory > 0 && !c.Memory {
		out = append(out, "memory is limited by watching, not by a cgroup, and can be overshot for some milliseconds: "+why)
	}
	if l.CPUs > 0 && !c.CPU {
		out = append(out, "CPU time is limited in whole processors, not by a cgroup: "+why)
	}
	if h.NoProc {
		out = append(out, "the sandbox has no /proc: this host covers parts of its own, as containers do")
	}
	return out
}
