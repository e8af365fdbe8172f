package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolcell/toolcell/rootfs/cachedir"
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
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = rootdir.MakeDir(root, dir)
		}
		if err != nil {
			return fmt.Errorf("making mount point /%s: %w", dir, err)
		}
	}
	return nil
}

// mountPointsName is the file beside a root that lists what earlier versions added to
// it to be mounted on. Now the root of a run has such places, if its mounts need any
// (container.RoomFor), and the image stays as it was.
const mountPointsName = "mountpoints.json"

// CheckMountPoint reports why a directory, or else a file, cannot be mounted at a place
// that the root has, or could have. A link on the way is refused: an image could move
// the mount to where it hides something else (CVE-2019-16884).
func (r *Root) CheckMountPoint(target string, dir bool) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	parts := strings.Split(strings.Trim(path.Clean(target), "/"), "/")
	for i := range parts {
		name := path.Join(parts[:i+1]...)
		last := i == len(parts)-1
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			err = fmt.Errorf("/%s is a link in it; choose another place", name)
		case info.IsDir() != (dir || !last):
			err = fmt.Errorf("/%s is there, and a directory cannot take the place of a file, nor a file that of a directory; choose another place", name)
		}
		if err != nil {
			return fmt.Errorf("looking for a place for %q in the image: %w", target, err)
		}
	}
	return nil
}

func readMountPoints(file string) (names []string, err error) {
	if err = cachedir.ReadJSON(file, &names); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}
