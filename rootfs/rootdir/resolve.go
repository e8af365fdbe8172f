package rootdir

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// Resolve resolves the symlinks in the path of a directory.
func Resolve(root *os.Root, dir string) (string, error) {
	w := NewWalker(root)
	defer w.Close()
	_, real, err := w.Find(dir)
	return real, err
}

// ResolveFile resolves all symlinks in a path, including the last one.
func ResolveFile(root *os.Root, file string) (string, error) {
	w := NewWalker(root)
	defer w.Close()
	for range maxSymlinks {
		at, dir, err := w.Find(path.Dir(file))
		if err != nil {
			return "", err
		}
		name := path.Base(file)
		info, err := at.Lstat(name)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path.Join(dir, name), nil
		}
		target, err := at.Readlink(name)
		if err != nil {
			return "", err
		}
		if file = target; !path.IsAbs(target) {
			file = path.Join("/", dir, target)
		}
	}
	return "", errors.New("too many symlinks")
}
