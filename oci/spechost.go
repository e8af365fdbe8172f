package oci

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// A specHost is a host with what its sandboxes get because of it: the mounts
// as the code will see them, and the filters of system calls. newSpec depends
// on it and on nothing else.
type specHost struct {
	host.Host
	mounts  []hostMount         // what of it sandboxes are shown
	seccomp *specs.LinuxSeccomp // of every sandbox but a template
	makers  *specs.LinuxSeccomp // a template's, once one is started
}

// newSpecHost decides for a host how sandboxes see ms, and what they may call.
func newSpecHost(h host.Host, ms []Mount) (specHost, error) {
	s := specHost{Host: h}
	s.lookAtMounts(ms)
	var err error
	s.seccomp, err = seccompProfile(uncountedBy(h.Cgroup))
	return s, err
}

// nested reports whether the sandbox needs a user namespace in a user
// namespace: only one id can be mapped, and the code shall not be root inside;
// or the /proc of others has to be covered before the code runs.
func (h specHost) nested() bool { return h.UIDs.User < 0 || h.GIDs.User < 0 || h.NoProc }
