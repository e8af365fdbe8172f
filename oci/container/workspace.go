package container

import (
	"errors"
	"fmt"
	"os"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// OpenWorkspace opens the sandbox's /workspace, which the descriptor keeps
// when everything else of the sandbox is gone: also of code that was killed
// can be had what it left there. The process may read it since the sandbox's
// user namespace is its own or below it (ptrace(2), PTRACE_MODE_READ).
func OpenWorkspace(pid int) (*os.File, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/root/workspace", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's /workspace: %w", err)
	}
	dir := os.NewFile(uintptr(fd), "/workspace")
	// A sandbox that has just ended may have left its pid to another process.
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Blocks)*fs.Bsize != spec.WorkspaceSize {
		return nil, errors.Join(errors.New("the sandbox's /workspace is not what it was made as"), dir.Close())
	}
	return dir, nil
}
