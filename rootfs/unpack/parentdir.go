package unpack

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// parentDir is an open directory of the root.
type parentDir struct {
	root *os.Root // of Merger.parents
	dir  *os.File // the same, for system calls that os.Root lacks
	path string   // resolved
}

// fd is for calls with a name without a slash, which cannot lead elsewhere.
func (p parentDir) fd() int { return int(p.dir.Fd()) }

// setTime sets the time of a name, without following a symlink.
func (p parentDir) setTime(base string, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	err := unix.UtimesNanoAt(p.fd(), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	return os.NewSyscallError("utimensat", err)
}

// openParent opens the parent directory of an entry. It keeps the last one open, since the
// entries of a directory are adjacent in a layer.
func (m *Merger) openParent(dir string) (parentDir, error) {
	if m.parent.dir != nil && m.parentName == dir {
		return m.parent, nil
	}
	m.closeParent()
	root, full, err := m.parents.FindOrMake(dir)
	if err != nil {
		return parentDir{}, err
	}
	f, err := root.Open(".")
	if err != nil {
		return parentDir{}, err
	}
	m.parent, m.parentName = parentDir{root, f, full}, dir
	return m.parent, nil
}

func (m *Merger) closeParent() {
	if m.parent.dir != nil {
		m.parent.dir.Close()
	}
	m.parent = parentDir{}
}

// closeDirs closes all directories.
func (m *Merger) closeDirs() {
	m.closeParent()
	m.parents.Close()
	m.others.Close()
}
