package container

import (
	"fmt"
	"os"

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
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "init":
		if os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
			go endWithHost()
			// The user's other groups, which libcontainer keeps in a rootless
			// sandbox. Where only one id is mapped the kernel does not allow
			// it (user_namespaces(7), setgroups); what is not mapped counts
			// for files that the sandbox does not see.
			_ = unix.Setgroups(nil)
			if err := sealRoot(); err != nil {
				fmt.Fprintln(os.Stderr, "toolcell: making the root read-only:", err)
				os.Exit(125)
			}
			libcontainer.Init()
		}
	case "nest":
		if os.Getenv(spec.NestEnv) != "" {
			pid1.Nest()
		}
	}
}

// endWithHost ends this process when the host does. Later pid 1 does that
// (pid1.c), but if the host is killed while libcontainer's init waits for the
// signal to continue, init would wait forever.
func endWithHost() {
	lifeline := []unix.PollFd{{Fd: spec.ControlFD}} // POLLHUP comes unasked
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
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: root, Err: err}
	}
	// What the host's mount forbids cannot be allowed here, and leaving such
	// a flag out is refused (mount_namespaces(7), locked flags). The ST_ and
	// MS_ numbers of these flags are the same.
	const kept = unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	flags := uintptr(fs.Flags)&kept | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return &os.PathError{Op: "remount", Path: root, Err: err}
	}
	return nil
}
