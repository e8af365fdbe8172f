package unpack

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// parentDir is an open directory of the root.
type parentDir struct {
	root *os.Root // of Merger.parents
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

// openParent opens the directory that an entry belongs in. It keeps the last one
// open: the entries of a directory follow each other in a layer.
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
