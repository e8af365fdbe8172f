package unpack

import (
	"os"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

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

func (c *parentCache) close() {
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
	m.parent.close()
	real, err := rootdir.ResolveOrMake(m.root, dir)
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
