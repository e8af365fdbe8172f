package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// changesTrees reports whether mount_setattr(2) exists and no filter of a container refuses
// it: without room for attributes, the call is invalid.
func changesTrees() bool {
	_, _, errno := unix.Syscall6(unix.SYS_MOUNT_SETATTR, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno == unix.EINVAL
}

// rootGuard reports whether only a process with CAP_SETFCAP may map id 0 of its
// user namespace into another one (Linux 5.12, user_namespaces(7)).
func rootGuard() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 12)
}

// SeccompError reports why filters cannot be loaded, or nil. The kernel reads the filter
// first, so that without one the call fails with EFAULT and has no effect.
func SeccompError() error {
	const setModeFilter = 1
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, 0)
	if errno == unix.EFAULT {
		return nil
	}
	return errno
}

// LandlockVersion returns the version of Landlock, 0 if the kernel does not use it
// (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
func LandlockVersion() int {
	const versionFlag = 1
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(version)
}
