package oci

// missing says what h cannot give, each with its price.
func missing(h host, l Limits) []string {
	var out []string
	c := h.cgroup
	why := c.Why
	if why == "" {
		why = "its cgroup controller is not delegated"
	}
	if l.Memory > 0 && !c.Memory {
		out = append(out, "memory is limited by watching, not by a cgroup, and can be overshot for some milliseconds: "+why)
	}
	if l.CPUs > 0 && !c.CPU {
		out = append(out, "CPU time is not limited: "+why)
	}
	if h.noProc {
		out = append(out, "the sandbox has no /proc: this host covers parts of its own, as containers do")
	}
	return out
}
