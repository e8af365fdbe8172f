// Package host probes what this machine offers for sandboxes: IDs that may be mapped,
// cgroups that accept limits, and namespaces. It gives each sandbox an ID of its own, and
// reads files of the kernel. It makes no lasting changes.
//
// Namespaces are tried in a child, for which it starts this program again: init
// in namespaces.go is the child's part, so every binary that imports this
// package can probe.
package host

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Host describes the means for building sandboxes: who we are, and which IDs and cgroups
// we may use.
type Host struct {
	EUID       int
	InsideUID  uint32 // that code has in a sandbox
	InsideGID  uint32
	Admin      bool // we hold CAP_SYS_ADMIN: real root, not root of a container
	UIDs       IDMap
	GIDs       IDMap
	OwnUIDs    IDRange // for the code, one per sandbox; if empty, all share UIDs.User
	ServerUIDs IDRange // for MCP servers in sandboxes, one for each; never the code's; empty if there are too few
	Cgroup     Cgroup
	ProcNames  []string       // names in /proc that everyone may read, except processes
	NoProc     bool           // no /proc can be mounted, since ours is partly covered
	Exe        string         // this program's file, for sandboxes to start from
	HardLimits map[int]uint64 // our finite hard limits by resource (getrlimit(2))
	Recursive  bool           // mounts can be changed recursively (mount_setattr(2))
	NoIDMap    bool           // mounts cannot be ID-mapped
	RootGuard  bool           // the kernel keeps CAP_SETUID alone from mapping a parent's root
}

// Probe probes this host. uid and gid are the code's IDs inside.
func Probe(uid, gid uint32) (Host, error) {
	h := Host{EUID: os.Geteuid(), InsideUID: uid, InsideGID: gid, HardLimits: hardLimits(), RootGuard: rootGuard(), ProcNames: procNames(), Recursive: changesTrees()}
	h.Admin = h.EUID == 0 && holdsSysAdmin()
	h.Cgroup = detectCgroup(h.EUID)
	var err error
	if h.Exe, err = os.Executable(); err != nil {
		return h, fmt.Errorf("finding this program's file: %w", err)
	}
	if h.EUID == 0 {
		err = h.mapRoot()
	} else {
		h.mapUser()
	}
	return h, err
}

func (h *Host) mapRoot() error {
	uids, err := readIDRanges("/proc/self/uid_map")
	if err != nil {
		return err
	}
	gids, err := readIDRanges("/proc/self/gid_map")
	if err != nil {
		return err
	}
	h.UIDs, h.GIDs = mapAsRoot(uids, int64(h.InsideUID)), mapAsRoot(gids, int64(h.InsideGID))
	h.OwnUIDs, h.ServerUIDs = ownIDs(uids, h.UIDs)
	return nil
}

func (h *Host) mapUser() {
	uid, gid := os.Geteuid(), os.Getegid()
	h.UIDs, h.GIDs = IDMap{Root: int64(uid), User: -1}, IDMap{Root: int64(gid), User: -1}
	if !ThisSystem().mapsSubordinateIDs() {
		return
	}
	name := UserName(uid)
	// If this fails, subordinate IDs are not limited to those of the container.
	uids, _ := readIDRanges("/proc/self/uid_map")
	gids, _ := readIDRanges("/proc/self/gid_map")
	subordinate := readSubIDs("/etc/subuid", name, uid, uids)
	h.UIDs = MapAsUser(int64(uid), subordinate)
	h.GIDs = MapAsUser(int64(gid), readSubIDs("/etc/subgid", name, uid, gids))
	if h.UIDs.User < 0 || h.GIDs.User < 0 {
		// One without the other is useless, and a single-ID map is written without the tools.
		h.UIDs.User, h.GIDs.User = -1, -1
	}
	h.OwnUIDs, h.ServerUIDs = ownIDs(subordinate, h.UIDs)
}

// UserName returns the name of a user, or the number if it has no name.
func UserName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// procNames returns the names at the top of /proc that everyone may read, except processes.
func procNames() (names []string) {
	entries, _ := os.ReadDir("/proc") // without a /proc no sandbox starts
	for _, e := range entries {
		if name := e.Name(); name[0] < '0' || name[0] > '9' {
			if info, err := e.Info(); err == nil && info.Mode().Perm()&0o004 != 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// hardLimits returns the finite hard limits of this process.
func hardLimits() map[int]uint64 {
	limits := map[int]uint64{}
	for resource := range 16 {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err == nil && l.Max != unix.RLIM_INFINITY {
			limits[resource] = l.Max
		}
	}
	return limits
}

// LimitOf returns want, or the process's hard limit on the resource if that is lower.
func (h Host) LimitOf(resource int, want uint64) uint64 {
	if hard, ok := h.HardLimits[resource]; ok {
		return min(want, hard)
	}
	return want
}

// holdsSysAdmin reports whether this thread may create and enter mount namespaces. Root of a
// container usually may not.
func holdsSysAdmin() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&hdr, &sets[0]); err != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
