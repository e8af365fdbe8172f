package pid1

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// EnterUserNamespace is the stage before pid 1 of a sandbox on a single-ID host or without a
// /proc. libcontainer has built everything else, and pid1.c has just made a nested user
// namespace in which that ID is the code's. A new user namespace has every capability over
// itself, so this stage drops them, loads the seccomp filter and becomes pid 1. It does not
// return.
func EnterUserNamespace() {
	err := execNested(os.Args[2:])
	fmt.Fprintln(os.Stderr, "toolcell: entering the sandbox:", err)
	os.Exit(125)
}

// execNested returns only if it fails. Its first argument is a spec.Uncounted.
func execNested(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("no program named")
	}
	un, err := spec.ParseUncounted(args[0])
	if err != nil {
		return fmt.Errorf("reading %q: %w", args[0], err)
	}
	args = args[1:]
	if err := dropCapabilities(); err != nil {
		return err
	}
	profile, err := spec.SeccompProfile(un)
	if err != nil {
		return err
	}
	config, err := specconv.SetupSeccomp(profile)
	if err != nil {
		return fmt.Errorf("converting the seccomp profile: %w", err)
	}
	if _, err := seccomp.InitSeccomp(config); err != nil {
		return fmt.Errorf("loading the seccomp filter: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, spec.NestedEnv+"=") })
	return fmt.Errorf("running %q: %w", args[0], unix.Exec(args[0], args, env))
}

// dropCapabilities empties every capability set of this thread, the bounding
// set first, since that needs CAP_SETPCAP (capabilities(7)).
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // beyond the last capability of this kernel
		} else if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
