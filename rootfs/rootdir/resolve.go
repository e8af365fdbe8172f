package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxSymlinks is the kernel's limit in one path.
const maxSymlinks = 40

// Resolve follows the symlinks of a path to a directory, and returns a path to it
// without any.
func Resolve(root *os.Root, dir string) (string, error) {
	return resolve(root, dir, func(string) error { return fs.ErrNotExist })
}

// ResolveOrMake is Resolve, and makes the directories that are not there.
func ResolveOrMake(root *os.Root, dir string) (string, error) {
	return resolve(root, dir, func(missing string) error { return MakeDir(root, missing) })
}

// resolve calls absent for each directory that is not there.
func resolve(root *os.Root, dir string, absent func(path string) error) (string, error) {
	at, rest, links := ".", strings.Split(dir, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at) // of "." it is "."
			continue
		}
		next := path.Join(at, part)
		info, err := root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := absent(next); err != nil {
				return "", err
			}
			at = next
		case err != nil:
			return "", err
		case info.IsDir():
			at = next
		case info.Mode()&fs.ModeSymlink == 0:
			return "", fmt.Errorf("%w: %s", errNotDir, Quote(next))
		default:
			if links++; links > maxSymlinks {
				return "", fmt.Errorf("too many symlinks in %s", Quote(dir))
			}
			target, err := root.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(target) {
				at = "."
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
	}
	return at, nil
}

// ResolveFile follows all symlinks of a path, the last one too.
func ResolveFile(root *os.Root, file string) (string, error) {
	for range maxSymlinks {
		dir, err := Resolve(root, path.Dir(file))
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
