package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// mountPoints are the directories that a sandbox mounts on. They are made here
// because a root is shared and read-only when a sandbox starts.
var mountPoints = []string{"proc", "dev", "tmp", "workspace", "run", "run/toolcell"}

// makeMountPoints makes real directories of the mount points. An image that has
// a symlink there could move a mount to where it hides something else, which is
// how CVE-2019-16884 began; what it has in its place is of no use below a mount.
func makeMountPoints(root *os.Root) error {
	for _, dir := range mountPoints {
		info, err := root.Lstat(dir)
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil {
			err = root.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making mount point /%s: %w", dir, err)
		}
		if err := rootdir.MakeDir(root, dir); err != nil {
			return fmt.Errorf("making mount point /%s: %w", dir, err)
		}
	}
	return nil
}
