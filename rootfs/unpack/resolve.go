package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

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

// resolve follows the symlinks of a path to a directory, and returns a path to
// it without any. Missing directories are made if create is set.
func (m *Merger) resolve(dir string, create bool) (string, error) {
	return ResolveIn(m.root, dir, func(missing string) error {
		if !create {
			return fs.ErrNotExist
		}
		if err := m.root.Mkdir(missing, 0o755); err != nil {
			return err
		}
		return m.root.Chmod(missing, 0o755) // whatever the umask is
	})
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

// parentDir is an open directory of the root.
type parentDir struct {
	root *os.Root
	dir  *os.File // the same, for calls that os.Root does not have
	path string   // resolved
}

// fd is for calls that take a name without a slash, which cannot lead elsewhere.
func (p parentDir) fd() int { return int(p.dir.Fd()) }

// setTime gives a name its time, without following it if it is a symlink.
func (p parentDir) setTime(base string, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	err := unix.UtimesNanoAt(p.fd(), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	return os.NewSyscallError("utimensat", err)
}

// parentCache keeps the last parent directory open: the entries of a directory
// follow each other in a layer.
type parentCache struct {
	name  string // as the layer has it
	dir   parentDir
	stale bool // to be resolved anew
}

func (c *parentCache) forget() {
	if c.dir.root != nil {
		c.dir.root.Close()
		c.dir.dir.Close()
	}
	*c = parentCache{}
}

// openParent opens the directory that an entry belongs in.
func (m *Merger) openParent(dir string) (parentDir, error) {
	if m.parent.dir.root != nil && m.parent.name == dir && !m.parent.stale {
		return m.parent.dir, nil
	}
	m.parent.forget()
	real, err := m.resolve(dir, true)
	if err != nil {
		return parentDir{}, err
	}
	root, err := m.root.OpenRoot(real)
	if err != nil {
		return parentDir{}, err
	}
	f, err := root.Open(".")
	if err != nil {
		root.Close()
		return parentDir{}, err
	}
	m.parent = parentCache{name: dir, dir: parentDir{root, f, real}}
	return m.parent.dir, nil
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
