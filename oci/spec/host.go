package spec

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// A Host is a host with what follows from it for sandboxes: the mounts as the code will see
// them, and the system call filters.
type Host struct {
	host.Host
	Mounts          []ShownMount        // folders that sandboxes are shown
	Seccomp         *specs.LinuxSeccomp // of every sandbox but a template
	TemplateSeccomp *specs.LinuxSeccomp // a template's, once one is started
}

// NewHost decides how sandboxes on a host see ms, and which system calls they may make.
func NewHost(h host.Host, ms []Mount) (Host, error) {
	s := Host{Host: h}
	s.ResolveMounts(ms)
	var err error
	s.Seccomp, err = SeccompProfile(UncountedBy(h.Cgroup))
	return s, err
}

// nested reports whether the sandbox needs a nested user namespace: on a single-ID host,
// since the code must not be root inside, or if the host's /proc has to be covered before
// the code runs.
func (h Host) nested() bool { return h.UIDs.User < 0 || h.GIDs.User < 0 || h.NoProc }

// CodeUID returns the host ID of the code; codeGID is its group.
func (h Host) CodeUID() int64 { return h.codeID(h.UIDs) }

func (h Host) codeGID() int64 { return h.codeID(h.GIDs) }

func (h Host) codeID(of host.IDMap) int64 {
	if h.nested() {
		return of.Root
	}
	return of.User
}

// CodeUIDs returns the host IDs from which a container takes one for its code.
func (h Host) CodeUIDs() host.IDRange {
	if h.nested() && h.EUID != 0 {
		return host.IDRange{} // the code has the ID of container root: this user's own
	}
	return h.OwnUIDs
}

// WithUID returns h with the host ID of the code of one container.
func (h Host) WithUID(id int64) Host {
	if h.nested() {
		h.UIDs.Root = id
	} else {
		h.UIDs.User = id
	}
	return h
}

// ForkUIDs returns the host IDs from which a fork of a template takes its own. If there are
// none, all forks have the template's: an ID-mapped mount has the same mapping for all of
// them.
func (h Host) ForkUIDs() host.IDRange {
	mapped := slices.ContainsFunc(h.Mounts, func(m ShownMount) bool { return m.Mapped })
	if h.nested() || mapped || !h.RootGuard {
		return host.IDRange{}
	}
	return h.OwnUIDs
}

// FirstForkUID is the ID inside a template that maps to the first of ForkUIDs. Its low bits
// are zero, so that the filter can recognize all of them.
const FirstForkUID = 1 << 30
