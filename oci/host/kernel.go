package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

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

// ReadKernelFile reads a file of the kernel whose reads never wait, such as a counter of a
// cgroup, up to a page of it. os.ReadFile would first hand it to the poller, with three times
// as many system calls, and an answer waits for what is read here.
func ReadKernelFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 4096)
	n, err := unix.Pread(fd, b, 0)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return b[:n], nil
}

// Number reads a number from a file of lines such as "max 3" or "VmRSS:  12 kB".
func Number(file []byte, name string) int64 {
	for line := range bytes.Lines(file) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(bytes.TrimSuffix(fields[0], []byte(":"))) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// ChildrenOf returns the processes that any thread of one has started. With an error, it
// returns those of the threads that can be read.
func ChildrenOf(pid int) (children []int, err error) {
	threads, err := ThreadsOf(pid)
	for _, thread := range threads {
		all, readErr := os.ReadFile(thread + "/children")
		err = errors.Join(err, readErr)
		for field := range strings.FieldsSeq(string(all)) {
			child, numErr := strconv.Atoi(field)
			if err = errors.Join(err, numErr); numErr == nil {
				children = append(children, child)
			}
		}
	}
	return children, err
}

// ThreadsOf returns the folders of a process's threads in /proc.
func ThreadsOf(pid int) (threads []string, err error) {
	at := fmt.Sprintf("/proc/%d/task/", pid)
	entries, err := os.ReadDir(at)
	for _, e := range entries {
		threads = append(threads, at+e.Name())
	}
	return threads, err
}

// MemoryAvailable returns how many bytes programs could use without swapping (proc(5),
// MemAvailable); a large number if unknown.
func MemoryAvailable() int64 {
	b, err := ReadKernelFile("/proc/meminfo")
	if n := Number(b, "MemAvailable"); err == nil && n > 0 {
		return n << 10
	}
	return 1 << 62
}
