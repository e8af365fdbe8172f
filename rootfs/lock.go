package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the named lock of the store, exclusively or shared. It is held against other processes
// and against other goroutines of this one alike, as each call has its own open
// file, and the kernel drops it if the process dies. Lock files stay: removing
// one would let two holders lock two files of one name.
func (s *Store) lock(ctx context.Context, name string, how int) (unlock func(), err error) {
	// The kernel's own waiting cannot be cancelled, so this asks again and
	// again; a pull takes seconds, so some milliseconds more do not count.
	wait := time.Millisecond
	// Somebody may have cleared the whole store away meanwhile.
	if err := makeFolders(s.dir); err != nil {
		return nil, err
	}
	for {
		unlock, err := s.tryLock(name, how)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, 50*time.Millisecond)
	}
}

// tryLock takes the lock, exclusively or shared, if it is free; the error is
// EWOULDBLOCK if not.
func (s *Store) tryLock(name string, how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, "locks", name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
