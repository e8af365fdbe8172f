package spec

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// A Server is what a process has that is one of the user's MCP servers. It begins only when the host
// says so (oci.Sandbox.Begin), since its network has to be there first; its filter of system calls
// allows what servers need and code does not (SeccompProfile); and it has a HOME that outlives it.
type Server struct {
	Home   string  // folder on the host, which belongs to UID
	UID    int64   // of the host, which no code and no other server has; -1 is this user's own
	Dir    string  // where it starts, in the sandbox; empty is HomeTarget
	Mounts []Mount // folders of the user's that it is shown; programs run from those that it cannot write to

	Section string // of the policy that names the mounts, for errors
}

// HomeTarget is where servers see their Home. It is the one folder of a sandbox from which programs run
// that can be written to: package managers and native modules need that.
const HomeTarget = "/home/server"

// Serving returns h, which shows at most a project, for a server: with its mounts, its user ID and its filter.
func (h Host) Serving(s *Server) (Host, error) {
	if s == nil {
		return h, nil
	}
	h.Mounts = slices.Clip(h.Mounts)
	shown := len(h.Mounts)
	h.ResolveMounts(s.Mounts)
	for i := range h.Mounts {
		if i >= shown {
			h.Mounts[i].NamedBy = s.Section
		}
		h.Mounts[i].Exec = !h.Mounts[i].Writable
	}
	switch {
	case s.UID >= 0:
		h = h.WithUID(s.UID)
		h.OwnUIDs = host.IDRange{}
	case h.EUID != 0: // its HOME is this user's
		h.UIDs.User, h.GIDs.User = -1, -1
	case h.UIDs.User >= 0:
		return h, errors.New("there are too few user IDs here for one of the server's own")
	}
	for _, m := range h.Mounts[shown:] {
		if what := h.Denied(m); what != "" {
			return h, fmt.Errorf("the server could not %s %q (mounts in %s): it has no rights of %s there; give that to another user, or let others %s it",
				what, m.Source, m.NamedBy, host.UserName(int(m.Owner)), what)
		}
	}
	home := ShownMount{Source: s.Home, Target: HomeTarget, Writable: true, NamedBy: "HOME of a server", Exec: true}
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

// watcherShare is which part of what a user of the host may have of watchers one server may take.
const watcherShare = 8

// limitWatchers bounds what a server has of inotify. The kernel counts that for the sandbox's user
// namespace, and with it for the user who made it (user_namespaces(7)): a server that took all would
// leave the user's other programs, and as root those of the host, without. A kernel that does not count
// it there has no such settings, and without a /proc for the sandbox they cannot be made.
func limitWatchers(s *specs.Spec, h Host) {
	if h.NoProc {
		return
	}
	for _, what := range []string{"instances", "watches"} {
		text, err := os.ReadFile("/proc/sys/user/max_inotify_" + what)
		if err != nil {
			continue
		}
		if all, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			s.Linux.Sysctl["user.max_inotify_"+what] = strconv.Itoa(max(1, all/watcherShare))
		}
	}
}
