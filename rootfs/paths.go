package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/toolcell/toolcell/rootfs/unpack"
)

// resolveFile follows all symlinks of a path, the last one too.
func resolveFile(root *os.Root, file string) (string, error) {
	for range unpack.MaxSymlinks {
		dir, err := unpack.ResolveIn(root, path.Dir(file), func(string) error { return fs.ErrNotExist })
		if err != nil {
			return "", err
		}
		real := path.Join(dir, path.Base(file))
		info, err := root.Lstat(real)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return real, nil
		}
		target, err := root.Readlink(real)
		if err != nil {
			return "", err
		}
		if file = target; !path.IsAbs(target) {
			file = path.Join("/", dir, target)
		}
	}
	return "", errors.New("too many symlinks")
}
