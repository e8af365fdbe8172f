package spec

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// A ShownMount is a Mount with what this host says of its source.
type ShownMount struct {
	Mount
	Dir    bool
	Owner  int64
	Group  int64
	Mode   fs.FileMode // permissions
	Mapped bool        // the owner's files are shown as the code's own
	Below  []string    // in the sandbox: where file systems are mounted below the source
}

// ResolveMounts finds out how the code can get at what is mounted:
//
// Real root maps sandboxes to ids that own nothing. The id of an ordinary owner
// is shown as the code's (mount_setattr(2), MOUNT_ATTR_IDMAP), in this mount
// and nowhere else. Files of root are never shown as the code's own: it could
// leave a setuid-root program there.
//
// An ordinary user has subordinate ids for the code, which own nothing either.
// For a mounted folder that the user owns and others may not use, the code gets
// the user's own id, as on a host that has only that one (docs/security.md).
func (h *Host) ResolveMounts(ms []Mount) {
	for _, m := range ms {
		p := ShownMount{Mount: m}
		if st, err := os.Stat(m.Source); err == nil { // CheckMounts reports the error
			s := st.Sys().(*syscall.Stat_t)
			p.Dir, p.Owner, p.Group, p.Mode = st.IsDir(), int64(s.Uid), int64(s.Gid), st.Mode().Perm()
		}
		closed := p.Writable || p.lacks(p.Mode) != ""
		switch {
		case !closed:
		case h.UIDs.User >= 0 && p.Owner == h.UIDs.User:
			h.OwnUIDs = host.IDRange{} // given to sandboxes, so all of them have its owner's id
		case h.Admin && h.UIDs.User >= 0 && h.GIDs.User >= 0:
			p.Mapped = p.Owner != 0 && !h.NoIDMap && host.HasAllIDs()
		case h.EUID != 0 && p.Owner == int64(h.EUID):
			h.UIDs.User, h.GIDs.User = -1, -1
		}
		h.Mounts = append(h.Mounts, p)
	}
}

// lacks names what the last three bits of mode do not permit.
func (m ShownMount) lacks(mode fs.FileMode) string {
	read := fs.FileMode(0o4)
	if m.Dir {
		read = 0o5
	}
	switch {
	case mode&read != read:
		return "read"
	case m.Writable && mode&0o2 == 0:
		return "write"
	}
	return ""
}

// Denied says what the code cannot do with a mount, judging by its top
// directory.
func (h Host) Denied(m ShownMount) string {
	uid := h.UIDs.User
	if uid < 0 {
		uid = h.UIDs.Root
	}
	switch {
	case m.Mapped || m.Owner == uid:
		return m.lacks(m.Mode >> 6)
	case h.UIDs.User < 0 && h.hasGroup(m.Group):
		return m.lacks(m.Mode >> 3)
	}
	return m.lacks(m.Mode)
}

func (h Host) hasGroup(gid int64) bool {
	groups, _ := os.Getgroups()
	return gid == int64(os.Getegid()) || slices.Contains(groups, int(gid))
}

// CheckMounts reports a source that is not what it was: code that may write
// could have put a link in the place of a folder of its own.
func (h Host) CheckMounts() error {
	for _, m := range h.Mounts {
		real, err := filepath.EvalSymlinks(m.Source)
		if err == nil && real != m.Source {
			err = fmt.Errorf("it has become a link to %q", real)
		}
		if err != nil {
			return fmt.Errorf("showing %q in the sandbox (MCP_BRIDGE_MOUNTS): %w", m.Source, err)
		}
	}
	return nil
}

// hostMounts are the mounts of the specification.
func hostMounts(h Host) (out []specs.Mount) {
	for _, m := range h.Mounts {
		s := specs.Mount{
			Destination: path.Clean(m.Target), Type: "bind", Source: m.Source,
			Options: []string{"bind", "nosuid", "nodev", "noexec"},
		}
		if !m.Writable {
			s.Options = append(s.Options, "ro")
		}
		if len(m.Below) > 0 {
			// The kernel does not bind a part of what was mounted together
			// (mount_namespaces(7)). What is below comes along, and is covered.
			s.Options[0] = "rbind"
			if h.Recursive {
				s.Options = append(s.Options, "rnosuid", "rnodev", "rnoexec")
			}
			if h.Recursive && !m.Writable {
				s.Options = append(s.Options, "rro")
			}
		}
		if m.Mapped {
			group := m.Group
			if group < firstPersonID {
				group = m.Owner // never a group of the system's
			}
			s.Options = append(s.Options, "idmap")
			s.UIDMappings = showAs(m.Owner, h.UIDs.User)
			s.GIDMappings = showAs(group, h.GIDs.User)
		}
		out = append(out, s)
	}
	return out
}

// coveredMounts are the places where a sandbox sees nothing of what is mounted below
// the folders that it is shown.
func coveredMounts(h Host) (out []string) {
	for _, m := range h.Mounts {
		out = append(out, m.Below...)
	}
	return out
}

// firstPersonID is where the ids of people begin (systemd, "Users, Groups, UIDs
// and GIDs on systemd systems").
const firstPersonID = 1000

// showAs maps ids so that one is shown as another, which then stands for
// nothing else, and all others as they are: what belongs to an id without a
// place in the map cannot be written to at all.
func showAs(id, as int64) (out []specs.LinuxIDMapping) {
	const end = 1<<32 - 1 // no id
	keep := func(from, to int64) {
		if from < to {
			out = append(out, specs.LinuxIDMapping{ContainerID: uint32(from), HostID: uint32(from), Size: uint32(to - from)})
		}
	}
	low, high := min(id, as), max(id, as)
	keep(0, low)
	out = append(out, specs.LinuxIDMapping{ContainerID: uint32(id), HostID: uint32(as), Size: 1})
	keep(low+1, high)
	keep(high+1, end)
	return out
}

// OnTmpfs reports whether a path is below one of the writable places, each of
// which a sandbox has for itself.
func OnTmpfs(name string) bool {
	return slices.ContainsFunc(Writable, func(t Tmpfs) bool { return strings.HasPrefix(name, t.Dest+"/") })
}

// WritableTargets are those for Landlock (Readable); what lies on a tmpfs is
// covered by the rule for that.
func (h Host) WritableTargets() []string {
	out := []string{}
	for _, m := range h.Mounts {
		if m.Writable && !OnTmpfs(m.Target) {
			out = append(out, m.Target)
		}
	}
	return out
}
