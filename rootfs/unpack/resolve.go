package unpack

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
