package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
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

// mountPointsName is the file beside a root that lists what was added to it to be
// mounted on.
const mountPointsName = "mountpoints.json"

// AddMountPoint makes a place in the root at which a directory, or else a file,
// can be mounted; it stays there, empty. A link on the way is refused: an image
// could move the mount to where it hides something else (CVE-2019-16884).
func (r *Root) AddMountPoint(target string, dir bool) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// Several servers may do this at once.
	lock, err := os.Open(filepath.Dir(r.Dir))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return os.NewSyscallError("flock", err)
	}
	if err := addMountPoint(root, target, dir, r.recordMountPoint); err != nil {
		return fmt.Errorf("making a place for %q in the image: %w", target, err)
	}
	return nil
}

func addMountPoint(root *os.Root, target string, dir bool, note func(name string) error) error {
	parts := strings.Split(strings.Trim(path.Clean(target), "/"), "/")
	for i := range parts {
		name := path.Join(parts[:i+1]...)
		last := i == len(parts)-1
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err = note(name); err == nil && last && !dir {
				err = rootdir.MakeFile(root, name, "")
			} else if err == nil {
				err = rootdir.MakeDir(root, name)
			}
			if err != nil {
				return err
			}
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("/%s is a link in it; choose another place", name)
		case info.IsDir() != (dir || !last):
			return fmt.Errorf("/%s is there, and a directory cannot take the place of a file, nor a file that of a directory; choose another place", name)
		}
	}
	return nil
}

// recordMountPoint keeps the name from being taken for damage.
func (r *Root) recordMountPoint(name string) error {
	file := filepath.Join(filepath.Dir(r.Dir), mountPointsName)
	names, err := readMountPoints(file)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	return cachedir.WriteJSON(file, append(names, name))
}

func readMountPoints(file string) (names []string, err error) {
	if err = cachedir.ReadJSON(file, &names); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}
