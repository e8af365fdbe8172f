package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

// finishRoot adds what a sandbox needs to the merged layers.
func finishRoot(ctx context.Context, m *unpack.Merger, root *os.Root) error {
	return errors.Join(m.SetDirModes(ctx), makeMountPoints(root), addEtcFiles(root))
}

// mountPoints are the directories on which sandboxes mount. They are made in advance, since
// a root is shared and read-only when a sandbox starts.
var mountPoints = []string{"proc", "dev", "tmp", "workspace", "run", "run/toolcell"}

// makeMountPoints replaces whatever is in the place of a mount point with a directory. With
// a symlink there, an image could move a mount to hide something else, which is how
// CVE-2019-16884 began. The image's own files would be covered by the mount anyway.
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

// mountPointsName is the file beside a root that lists mount points that earlier versions
// added to it. Now they are made in the root of a run (container.RoomFor), and the image
// stays unchanged.
const mountPointsName = "mountpoints.json"

// CheckMountPoint reports why a directory or file cannot be mounted at a path that exists
// in the root or could be made there. It refuses symlinks on the way: an image could move
// the mount to hide something else (CVE-2019-16884).
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

// etcFiles are the files that libc uses to resolve names. Images lack them or have empty
// ones, since every container runtime brings its own. A sandbox has no name server, but
// unless a file says so, musl asks one and waits five seconds for each name.
var etcFiles = map[string]string{
	"etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
	"etc/resolv.conf": "options timeout:0 attempts:1\n",
}

// addEtcFiles writes those that are missing or empty in an image, unless its /etc is not a
// directory.
func addEtcFiles(root *os.Root) error {
	if err := rootdir.MakeDirs(root, "etc"); err != nil {
		return fmt.Errorf("making /etc: %w", err)
	}
	if info, err := root.Lstat("etc"); err != nil || !info.IsDir() {
		return err
	}
	for name, content := range etcFiles {
		info, err := root.Lstat(name)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > 0) {
			continue
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = rootdir.MakeInside(root, path.Dir(name), func() error { return rootdir.ReplaceFile(root, name, []byte(content)) })
		}
		if err != nil {
			return fmt.Errorf("writing /%s: %w", name, err)
		}
	}
	return nil
}
