package container

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// stagingDir is a folder of root that every ID may search: real root mounts the root
// directory there, and root of a container keeps files for /proc there (procFiles).
const stagingDir = "/run/toolcell"

// onStage calls start with a directory that shows rootfs and that sandboxes
// can reach.
//
// Real root maps sandboxes to IDs that own nothing. Such an ID cannot even search most
// places for a state folder (/root, a mktemp folder). So root starts each sandbox from a
// thread with its own mount namespace, in which the root directory is mounted at a
// searchable path. The host does not see this mount, and it disappears with the thread. An
// ordinary user owns the state folders inside the sandbox too and needs no stage; root of a
// container cannot make one.
func onStage(admin bool, rootfs string, start func(rootfs string) error) error {
	if !admin {
		return start(rootfs)
	}
	if err := os.MkdirAll(stagingDir, 0o755); err != nil {
		return start(rootfs) // a read-only /run: the folder itself may do
	}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer contain.Error("starting a sandbox", &err)
		// Never unlocked: the thread, and with it the mount namespace,
		// ends with this goroutine.
		runtime.LockOSThread()
		staged, err := stage(rootfs)
		if err != nil {
			err = fmt.Errorf("staging the root file system: %w", err)
			return
		}
		err = start(staged)
	}()
	return <-done
}

// stage moves this thread to a mount namespace of its own and mounts rootfs
// there. The directory is opened in between: a descriptor from before the move
// belongs to the other namespace, and the tmpfs may cover the way to it.
func stage(rootfs string) (string, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return "", os.NewSyscallError("unshare", err)
	}
	// Mounts made here must not propagate to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return "", os.NewSyscallError("mount", err)
	}
	fd, err := unix.Open(rootfs, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: rootfs, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Mount("tmpfs", stagingDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return "", &os.PathError{Op: "mount", Path: stagingDir, Err: err}
	}
	dir := filepath.Join(stagingDir, "root")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/thread-self/fd/%d", fd), dir, "", unix.MS_BIND, ""); err != nil {
		return "", &os.PathError{Op: "bind", Path: rootfs, Err: err}
	}
	return dir, nil
}
