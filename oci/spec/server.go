package spec

import (
	"cmp"

	"github.com/toolcell/toolcell/oci/host"
)

// A Server is what a process has that is one of the user's MCP servers. It begins only when the host
// says so (oci.Sandbox.Begin), since its network has to be there first; its filter of system calls
// allows what servers need and code does not (SeccompProfile); and it has a HOME that outlives it.
type Server struct {
	Home   string  // folder on the host, which belongs to UID
	UID    int64   // of the host, which no code and no other server has; -1 is what the host gives to code
	Dir    string  // where it starts, in the sandbox; empty is HomeTarget
	Mounts []Mount // folders of the user's that it is shown

	Section string // of the policy that names the mounts, for errors
}

// HomeTarget is where servers see their Home. It is the one folder of a sandbox from which programs run
// that can be written to: package managers and native modules need that.
const HomeTarget = "/home/server"

// Serving returns h, which shows nothing yet, for a server: with its mounts, its user ID and its filter.
func (h Host) Serving(s *Server) (Host, error) {
	if s == nil {
		return h, nil
	}
	h.ResolveMounts(s.Mounts)
	for i := range h.Mounts {
		h.Mounts[i].NamedBy = s.Section
	}
	if s.UID >= 0 {
		h = h.WithUID(s.UID)
		h.OwnUIDs = host.IDRange{}
	}
	home := ShownMount{Source: s.Home, Target: HomeTarget, Writable: true, NamedBy: "HOME of a server", Home: true}
	home.stat()
	h.Mounts = append(h.Mounts, home)
	un := UncountedBy(h.Cgroup)
	un.Server = true
	var err error
	h.Seccomp, err = SeccompProfile(un)
	return h, err
}

// workingDir is where a process starts, in the sandbox.
func (s *Server) workingDir() string {
	if s == nil {
		return "/workspace"
	}
	return cmp.Or(s.Dir, HomeTarget)
}
