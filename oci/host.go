package oci

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Host says what there is to build a sandbox with: who we are, and which ids
// and cgroups we may use.
type Host struct {
	euid      int
	admin     bool // we hold CAP_SYS_ADMIN: real root, not root of a container
	uids      idMap
	gids      idMap
	cgroup    cgroup
	noProc    bool   // no /proc can be mounted: ours is partly covered
	exe       string // this program's file, for sandboxes to start from
	maxFiles  uint64 // RLIMIT_NOFILE's hard limit, 0 if there is none
	maxLocked uint64 // RLIMIT_MEMLOCK's
	maxProcs  uint64 // RLIMIT_NPROC's hard limit, 0 if there is none
	noIDMap   bool   // no mount can show its owner's files as another id's
}

// probeHost finds out what this host gives. wantUID and wantGID are the ids
// that code is to have inside.
func probeHost(wantUID, wantGID uint32) (Host, error) {
	h := Host{euid: os.Geteuid(), maxFiles: hardLimit(unix.RLIMIT_NOFILE), maxLocked: hardLimit(unix.RLIMIT_MEMLOCK), maxProcs: hardLimit(unix.RLIMIT_NPROC)}
	h.admin = h.euid == 0 && holdsSysAdmin()
	h.cgroup = detectCgroup(h.euid)
	var err error
	if h.exe, err = os.Executable(); err != nil {
		return h, fmt.Errorf("finding this program's file: %w", err)
	}
	if h.euid == 0 {
		err = h.mapRoot(wantUID, wantGID)
	} else {
		h.mapUser()
	}
	return h, err
}

func (h *Host) mapRoot(wantUID, wantGID uint32) error {
	uids, err := readRanges("/proc/self/uid_map")
	if err != nil {
		return err
	}
	gids, err := readRanges("/proc/self/gid_map")
	if err != nil {
		return err
	}
	h.uids, h.gids = mapAsRoot(uids, int64(wantUID)), mapAsRoot(gids, int64(wantGID))
	return nil
}

func (h *Host) mapUser() {
	uid, gid := os.Geteuid(), os.Getegid()
	h.uids, h.gids = idMap{Root: int64(uid), User: -1}, idMap{Root: int64(gid), User: -1}
	if !haveMappingTools() {
		return
	}
	name := userName(uid)
	h.uids = mapAsUser(int64(uid), readSubIDs("/etc/subuid", name, uid))
	h.gids = mapAsUser(int64(gid), readSubIDs("/etc/subgid", name, uid))
	if h.uids.User < 0 || h.gids.User < 0 {
		// One without the other is of no use, and a map of a single id is
		// written without the tools.
		h.uids.User, h.gids.User = -1, -1
	}
}

// userName gives the name of a user, or the number where there is none.
func userName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// haveMappingTools reports whether newuidmap and newgidmap are there and may
// do their work: without them subordinate ids cannot be mapped by an ordinary
// user.
func haveMappingTools() bool {
	return thisSystem().mapsSubordinateIDs()
}

func hardLimit(which int) uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(which, &l); err != nil || l.Max == unix.RLIM_INFINITY {
		return 0
	}
	return l.Max
}

// holdsSysAdmin reports whether this thread may make mount namespaces and
// enter others. Root of a container usually may not.
func holdsSysAdmin() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&hdr, &sets[0]); err != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
