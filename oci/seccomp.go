package oci

import (
	"fmt"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// seccompProfile is the Moby project's default profile, reduced to what it
// lets a process without any capability do. In that form it refuses, among
// others, new namespaces, mounts, ptrace on old kernels, bpf, keyctl and
// userfaultfd; clone3 answers ENOSYS so that glibc falls back to clone, whose
// flags a filter can see.
func seccompProfile() (*specs.LinuxSeccomp, error) {
	none := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
	p, err := seccomp.GetDefaultProfile(none)
	if err != nil {
		return nil, fmt.Errorf("making the seccomp profile: %w", err)
	}
	return p, nil
}
