package spec

import (
	"cmp"
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

// A ShownMount is a Mount with facts about its source.
type ShownMount struct {
	Mount
	Dir    bool
	Owner  int64
	Group  int64
	Mode   fs.FileMode // permissions
	Mapped bool        // ID-mapped: the owner's files appear as the code's own
	Below  []string    // the source's submounts, as paths in the sandbox
	Hidden []string    // what of the source is covered, as paths in the sandbox

	NamedBy string // the setting, for errors; empty is TOOLCELL_MOUNTS
	Project bool   // it is a Project's
	Exec    bool   // programs run from it
}

// A Project is a folder of the host that one sandbox can read, without some of what is in it.
// It changes no IDs: code reads it as any other user of the host would.
type Project struct {
	Source string   // on the host, absolute, without symbolic links
	Hidden []string // files and folders in it that are covered, as paths relative to it
}

// ProjectTarget is where sandboxes see their Project.
const ProjectTarget = "/project"

// ProjectMount returns how sandboxes on h see the folder of a project.
func (h Host) ProjectMount(p Project) ShownMount {
	m := ShownMount{Source: p.Source, Target: ProjectTarget, NamedBy: "--project", Project: true}
	m.stat()
	for _, name := range p.Hidden {
		m.Hidden = append(m.Hidden, path.Join(ProjectTarget, name))
	}
	return m
}

// Showing returns h with the mount of a project; nil is none.
func (h Host) Showing(p *Project) Host {
	if p != nil {
		h.Mounts = append(slices.Clip(h.Mounts), h.ProjectMount(*p))
	}
	return h
}

// ShowingAs returns h with the project that other shows, if it shows one.
func (h Host) ShowingAs(other Host) Host {
	for _, m := range other.Mounts {
		if m.Project {
			h.Mounts = append(slices.Clip(h.Mounts), m)
		}
	}
	return h
}

// ResolveMounts decides how the code gets access to mounts:
//
// Real root maps sandboxes to IDs that own nothing. In a mount, the ID of an ordinary owner
// is mapped to the code's (mount_setattr(2), MOUNT_ATTR_IDMAP). Files of root are never
// mapped to the code: it could leave a setuid-root program there.
//
// An ordinary user has subordinate IDs for the code, which own nothing either. For a mounted
// folder that only the user may use, the code gets the user's own ID, as on a single-ID host
// (docs/security.md).
func (h *Host) ResolveMounts(ms []Mount) {
	for _, m := range ms {
		p := ShownMount{Mount: m}
		p.stat()
		closed := p.Writable || p.lacks(p.Mode) != ""
		switch {
		case !closed:
		case h.EUID != 0 && p.Owner == int64(h.EUID):
			h.UIDs.User, h.GIDs.User = -1, -1
		case h.UIDs.User >= 0 && p.Owner == h.CodeUID():
			h.OwnUIDs = host.IDRange{} // all sandboxes need its owner's ID
		case h.Admin && h.UIDs.User >= 0 && h.GIDs.User >= 0:
			p.Mapped = p.Owner != 0 && !h.NoIDMap && host.HasAllIDs()
		}
		h.Mounts = append(h.Mounts, p)
	}
}

// stat fills in the facts about the source. CheckMounts reports the error.
func (m *ShownMount) stat() {
	if st, err := os.Stat(m.Source); err == nil {
		s := st.Sys().(*syscall.Stat_t)
		m.Dir, m.Owner, m.Group, m.Mode = st.IsDir(), int64(s.Uid), int64(s.Gid), st.Mode().Perm()
	}
}

// Setting names the setting that the mount comes from, for errors.
func (m ShownMount) Setting() string { return cmp.Or(m.NamedBy, "TOOLCELL_MOUNTS") }

// lacks names the access that the last three bits of mode do not permit.
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

// Denied names the access that the code does not have to a mount, judging by its top
// directory.
func (h Host) Denied(m ShownMount) string {
	switch {
	case m.Mapped || m.Owner == h.CodeUID():
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

// CheckMounts reports a source that has become a link: code with write access could have
// replaced one of its folders.
func (h Host) CheckMounts() error {
	for _, m := range h.Mounts {
		real, err := filepath.EvalSymlinks(m.Source)
		if err == nil && real != m.Source {
			err = fmt.Errorf("it has become a link to %q", real)
		}
		if err != nil {
			return fmt.Errorf("showing %q in the sandbox (%s): %w", m.Source, m.Setting(), err)
		}
	}
	return nil
}

// hostMounts are the mounts of the specification.
func hostMounts(h Host) (out []specs.Mount) {
	for _, m := range h.Mounts {
		s := specs.Mount{
			Destination: path.Clean(m.Target), Type: "bind", Source: m.Source,
			Options: []string{"bind", "nosuid", "nodev"},
		}
		if !m.Exec {
			s.Options = append(s.Options, "noexec")
		}
		if !m.Writable {
			s.Options = append(s.Options, "ro")
		}
		if len(m.Below) > 0 {
			// The kernel does not bind a part of mounts that were mounted together
			// (mount_namespaces(7)). So submounts are included, and covered.
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
			s.UIDMappings = showAs(m.Owner, h.CodeUID())
			s.GIDMappings = showAs(group, h.codeGID())
		}
		out = append(out, s)
	}
	return out
}

// coveredMounts returns what sandboxes see as empty: the submounts of mounted folders, and what
// of a project is hidden.
func coveredMounts(h Host) (out []string) {
	for _, m := range h.Mounts {
		out = append(out, Uppermost(slices.Concat(m.Below, m.Hidden))...)
	}
	return out
}

// firstPersonID is the first ID of human users (systemd, "Users, Groups, UIDs and GIDs on
// systemd systems").
const firstPersonID = 1000

// showAs returns a map of id to as, which is then mapped to nothing else, and of all other
// IDs to themselves: files of an unmapped ID could not be written at all.
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

// OnTmpfs reports whether a path is below one of the sandbox's own writable file systems.
func OnTmpfs(name string) bool {
	return slices.ContainsFunc(Writable, func(t Tmpfs) bool { return strings.HasPrefix(name, t.Dest+"/") })
}

// WritableTargets returns the writable mounts for Landlock (Readable). Those on a tmpfs are
// covered by its rule.
func (h Host) WritableTargets() []string {
	out := []string{}
	for _, m := range h.Mounts {
		if m.Writable && !OnTmpfs(m.Target) {
			out = append(out, m.Target)
		}
	}
	return out
}
