package state

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Stamp tells one state of a file or folder from another: compare two with ==. The
// zero value is of none.
type Stamp struct {
	Dev, Inode uint64
	Size       int64
	Mode       uint32 // with the type, as in st_mode; 0 only of the zero Stamp
	Modified   int64  // in nanoseconds since 1970
	Changed    int64  // the content, the mode or the owner: no program can set it back
}

// StampOf returns the stamp of what a path leads to. The error says why there is none.
func StampOf(path string) (Stamp, error) {
	return stampOf(path, func(st *unix.Stat_t) error { return unix.Stat(path, st) })
}

// StampOfFile returns the stamp of an open file.
func StampOfFile(f *os.File) (Stamp, error) {
	return StampOfFD(int(f.Fd()), f.Name())
}

// StampOfFD is StampOfFile for a descriptor, which may be one with O_PATH; errors call it name.
func StampOfFD(fd int, name string) (Stamp, error) {
	return stampOf(name, func(st *unix.Stat_t) error { return unix.Fstat(fd, st) })
}

// StampIn returns the stamp of a file in an open folder. It follows no link.
func StampIn(dir *os.File, name string) (Stamp, error) {
	return stampOf(name, func(st *unix.Stat_t) error {
		return unix.Fstatat(int(dir.Fd()), name, st, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func stampOf(name string, stat func(*unix.Stat_t) error) (Stamp, error) {
	var st unix.Stat_t
	err := stat(&st)
	for errors.Is(err, unix.EINTR) {
		err = stat(&st)
	}
	if err != nil {
		return Stamp{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return Stamp{st.Dev, st.Ino, st.Size, st.Mode, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// clockStep is how far apart two changes are that all file systems give different
// times (FAT counts in steps of two seconds).
const clockStep = 2 * time.Second

// Settled reports whether the next change is sure to have another stamp: the last one
// is not of just now.
func (s Stamp) Settled() bool { return time.Since(time.Unix(0, s.Changed)) > clockStep }
