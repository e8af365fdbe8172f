package state

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// A Stamp tells one state of a file or folder from another: compare two with ==. The
// zero value is of none.
type Stamp struct {
	Dev, Inode uint64
	Size       int64
	Mode       uint32 // with the type, as in st_mode; never 0 of what is there
	Modified   int64  // in nanoseconds since 1970
	Changed    int64  // the content, the mode or the owner: no program can set it back
}

// StampOf returns the stamp of what a path leads to. The error says why there is none.
func StampOf(path string) (Stamp, error) { return stampOf(os.Stat(path)) }

// StampOfFile returns the stamp of an open file.
func StampOfFile(f *os.File) (Stamp, error) { return stampOf(f.Stat()) }

func stampOf(info fs.FileInfo, err error) (Stamp, error) {
	if err != nil {
		return Stamp{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return Stamp{st.Dev, st.Ino, st.Size, st.Mode, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// clockStep is how far apart two changes are that all file systems give different
// times (FAT counts in steps of two seconds).
const clockStep = 2 * time.Second

// Settled reports whether the next change is sure to have another stamp: the last one
// is not of just now.
func (s Stamp) Settled() bool { return time.Since(time.Unix(0, s.Changed)) > clockStep }
