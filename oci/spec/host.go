package spec

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// A Host is a host and what follows from it for its sandboxes: the mounts as
// the code will see them, and the system call filters. New depends on it and on
// nothing else.
type Host struct {
	host.Host
	Mounts          []ShownMount        // folders of it that sandboxes are shown
	Seccomp         *specs.LinuxSeccomp // of every sandbox but a template
	TemplateSeccomp *specs.LinuxSeccomp // a template's, once one is started
}

// NewHost decides how sandboxes on a host see ms, and which system calls they
// may make.
func NewHost(h host.Host, ms []Mount) (Host, error) {
	s := Host{Host: h}
	s.ResolveMounts(ms)
	var err error
	s.Seccomp, err = SeccompProfile(UncountedBy(h.Cgroup))
	return s, err
}

// nested reports whether the sandbox needs a user namespace in a user
// namespace: only one id can be mapped, and the code must not be root inside;
// or the /proc of others has to be covered before the code runs.
func (h Host) nested() bool { return h.UIDs.User < 0 || h.GIDs.User < 0 || h.NoProc }
