package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A lockDir has the lock files of a store, by name. A lock is held against other
// processes and against other goroutines of this one alike, as each call has its
// own open file, and the kernel drops it if the process dies. Lock files stay:
// removing one would let two holders lock two files of one name.
type lockDir string

// The names of locks. A root is locked under the name of its folder while it is
// made or checked.
const (
	tagsLock  = "refs"  // while a tag is written
	pullsLock = "pulls" // shared by pulls, so that no process removes their layers before their image is there
)

func layerLock(name string) string { return "layer-" + name } // while a layer is made
func useLock(name string) string   { return "use-" + name }   // shared by the processes that use a root
func pullLock(key string) string   { return "ref-" + key }    // while a reference is pulled

// wait takes a lock, exclusively (LOCK_EX) or shared (LOCK_SH), as soon as it is
// free.
func (d lockDir) wait(ctx context.Context, name string, how int) (unlock func(), err error) {
	// The kernel's own waiting cannot be cancelled, so this asks again and
	// again; a pull takes seconds, so some milliseconds more do not count.
	pause := time.Millisecond
	// The user may have removed the whole store meanwhile.
	if err := makeFolders(filepath.Dir(string(d))); err != nil {
		return nil, err
	}
	for {
		unlock, err := d.try(name, how)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// try takes a lock if it is free; the error is EWOULDBLOCK if not.
func (d lockDir) try(name string, how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), os.O_RDWR|os.O_CREATE, 0o644)
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
