package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	_ "github.com/opencontainers/cgroups/devices" // without it every start fails: "cgroup manager is not configured to set device rules"
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // joins and makes namespaces before the Go runtime starts
	"github.com/toolcell/toolcell/oci/pid1"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// init turns this process into the inside of a sandbox if it was started as
// one. libcontainer starts our own binary again with argv[1] = "init", and our
// nested stage is started with argv[1] = "nest" (nesteduserns.go). It is here rather
// than in main so that every binary or test that can start a sandbox has it.
//
// In any other process the main goroutine keeps the main thread. Goroutines that enter
// the mount namespace of a sandbox (onStage; libcontainer, goCreateMountSources) end with
// their thread, but the main thread cannot end: it would stay there, keep what was in the
// sandbox, and show its mounts as this process's own (/proc/self).
func init() {
	runtime.LockOSThread()
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "init":
		if os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
			go endWithHost()
			// Drop the user's supplementary groups, which libcontainer keeps in a
			// rootless sandbox. With a single mapped ID the kernel refuses
			// (user_namespaces(7), setgroups); then the unmapped groups only
			// matter for files that the sandbox does not see.
			_ = unix.Setgroups(nil)
			joinKeyring()
			_ = addLoopbackAddress()
			if err := sealRoot(); err != nil {
				fmt.Fprintln(os.Stderr, "toolcell: making the root read-only:", err)
				os.Exit(125)
			}
			if err := makeResolver(); err != nil {
				fmt.Fprintln(os.Stderr, "toolcell: making a resolv.conf:", err)
				os.Exit(125)
			}
			libcontainer.Init()
		}
	case "nest":
		if os.Getenv(spec.NestedEnv) != "" {
			pid1.EnterUserNamespace()
		}
	}
}

// joinKeyring gives this thread, which becomes pid 1, its own session keyring
// (session-keyring(7)). Keyrings are charged to the real user ID: here the code's, not that
// of the user who runs toolcell, whose other programs may use up the quota (keyrings(7),
// maxkeys).
//
// If that ID's quota is used up too, or the kernel has no keys, the sandbox keeps the
// keyring it was started with. That is safe only because the filter refuses keyctl, add_key
// and request_key (TestCodeHasNoKeys), so that the code cannot reach it.
func joinKeyring() {
	const same = ^uintptr(0)
	setReal := func(uid uintptr) unix.Errno {
		// For this thread alone. Its effective ID stays, and with it its capabilities.
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, same, same)
		return errno
	}
	if uid := codeUID(); uid != 0 && setReal(uid) == 0 {
		defer setReal(0)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
}

// codeUID returns the code's user ID inside: the first mapped one that is not root's
// (spec.New), 0 if there is none.
func codeUID() uintptr {
	body, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(body)) {
		var inside, outside, size uint32
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 && inside != 0 {
			return uintptr(inside)
		}
	}
	return 0
}

// endWithHost ends this process when the host does. Later pid 1 does so (pid1.c), but if
// the host were killed while libcontainer's init waits for its signal to continue, init
// would wait forever.
func endWithHost() {
	lifeline := []unix.PollFd{{Fd: spec.ControlFD}} // POLLHUP is always reported
	for {
		n, err := unix.Poll(lifeline, -1)
		if err == unix.EINTR {
			continue
		}
		if n > 0 && lifeline[0].Revents&unix.POLLHUP != 0 {
			os.Exit(125)
		}
		return
	}
}

// sealRoot makes the root file system read-only, nosuid and nodev, before
// libcontainer builds the sandbox on it. libcontainer itself can only make it
// read-only, and only at the end. This process is already in the sandbox's
// user and mount namespaces (nsenter saw to that), and its working directory
// is the root to be (libcontainer sets it so).
func sealRoot() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "bind", Path: root, Err: err}
	}
	// Including submounts.
	err = unix.MountSetattr(unix.AT_FDCWD, root, unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
	})
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // Linux 5.12; filters of containers
		return os.NewSyscallError("mount_setattr", err)
	}
	if below, err := mountsBelow(root); err != nil || len(below) > 0 {
		return errors.Join(err, fmt.Errorf("file systems are mounted in the image (%q), which this kernel cannot make read-only", below))
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: root, Err: err}
	}
	// Flags of the host's mount cannot be cleared here: a remount without them is refused
	// (mount_namespaces(7), locked flags). Their ST_ and MS_ values are the same.
	const kept = unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	flags := uintptr(fs.Flags)&kept | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return &os.PathError{Op: "remount", Path: root, Err: err}
	}
	return nil
}

// makeResolver makes the sandbox's own resolv.conf, on a file system that is mounted where /tmp
// will be, and stays where the file is bound to (spec.mounts). Pid 1 gets it open, since it is
// seen read-only.
func makeResolver() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	at := filepath.Join(root, spec.ResolverFile)
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", filepath.Dir(at), "tmpfs", flags, "size=4k,nr_inodes=2,mode=755"); err != nil {
		return os.NewSyscallError("mount", err)
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	// In place of what held the number (newProcess).
	return errors.Join(f.Chmod(0o644), os.NewSyscallError("dup3", unix.Dup3(int(f.Fd()), spec.ResolverFD, 0))) // whatever our umask is
}
