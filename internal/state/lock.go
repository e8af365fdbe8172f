package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A Kind of lock: one holder, or many that all share it.
type Kind int

// The kinds of lock.
const (
	Exclusive Kind = unix.LOCK_EX
	Shared    Kind = unix.LOCK_SH
)

// ErrLocked means that another holder has the lock: another process, or another open
// file of this one.
var ErrLocked error = unix.EWOULDBLOCK

// maxPause bounds the time between two attempts to take a lock.
const maxPause = 50 * time.Millisecond

// Lock takes a lock, waiting until ctx ends. It makes the lock file and its folder,
// for this user alone. The lock file stays: removing it would let two processes hold
// the lock.
func Lock(ctx context.Context, path string, kind Kind) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// The kernel's own waiting cannot be canceled.
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		f, err := TryLock(path, os.O_CREATE, kind)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("another process holds %s: %w", path, context.Cause(ctx))
		}
	}
}

// TryLock opens a file and locks it; the error is ErrLocked if another holder has the
// lock. The file is opened for reading and writing, with more flags, such as O_CREATE;
// a folder, which O_DIRECTORY asks for, is opened for reading. Closing the file, or the
// end of the process, releases the lock. Programs that this one starts do not inherit it.
func TryLock(path string, flags int, kind Kind) (*os.File, error) {
	if flags&unix.O_DIRECTORY == 0 {
		flags |= os.O_RDWR
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := TryLockFile(f, kind); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// TryLockFile locks an open file, as TryLock does.
func TryLockFile(f *os.File, kind Kind) error {
	for {
		err := unix.Flock(int(f.Fd()), int(kind)|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}

// SameFile reports whether two paths lead to the same file or folder, by links or otherwise. A path
// that cannot be reached equals none.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// InPlace reports whether an open file still is what its path leads to. Another
// process may have removed a file between its opening and its locking.
func InPlace(f *os.File) bool {
	ours, err1 := f.Stat()
	there, err2 := os.Lstat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(ours, there)
}
