package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// MaxPath is the kernel's limit of a path in a system call.
const MaxPath = 4096

// MaxSymlinks is the kernel's limit in one path.
const MaxSymlinks = 40

var errNotDir = errors.New("a directory of its path is a file")

// Clean turns the name of a tar entry into a path relative to the root. What
// would lead out of the root ends at it, as ".." of "/" is "/".
func Clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the name has a NUL byte")
	}
	if name == "" {
		return "", errors.New("the name is empty")
	}
	if name = path.Clean("/" + name)[1:]; name == "" {
		return ".", nil
	}
	return name, nil
}

// ResolveIn resolves a path to a directory as if root were "/". Absent is asked
// what to do about a directory that is not there.
func ResolveIn(root *os.Root, dir string, absent func(path string) error) (string, error) {
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
			return "", fmt.Errorf("%w: %s", errNotDir, Short(next))
		default:
			if links++; links > MaxSymlinks {
				return "", fmt.Errorf("too many symlinks in %s", Short(dir))
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

// missing reports whether an error means that a path does not exist, or would
// lead through a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir)
}

// ReadDir lists a directory of a root. The fs.FS of a root would refuse names
// that are not UTF-8.
func ReadDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// Short quotes a name for an error without letting a hostile one flood it.
func Short(name string) string {
	const most = 200
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
