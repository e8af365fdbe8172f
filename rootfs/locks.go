package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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

// ErrInUse is in the chain of an error when an image cannot be removed because
// a process may be running code on it.
var ErrInUse = errors.New("the image is in use by another process")

// leases are the roots that this process uses and that no process may remove. The
// kernel ends them with the process, however it dies.
type leases struct {
	locks lockDir

	mu   sync.Mutex
	held map[string]func() // what gives a root free, by name
}

// acquire takes a lease of a root. It reports false if the root is being removed.
func (l *leases) acquire(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return true
	}
	unlock, err := l.locks.try(useLock(name), unix.LOCK_SH)
	// Another process may only be looking whether it is in use (inUse).
	for range 5 {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(time.Millisecond)
		unlock, err = l.locks.try(useLock(name), unix.LOCK_SH)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false
	}
	// A store that another user shares with us, read-only, takes no locks.
	if err == nil {
		l.held[name] = unlock
	}
	return true
}

func (l *leases) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unlock := l.held[name]; unlock != nil {
		unlock()
		delete(l.held, name)
	}
}

func (l *leases) releaseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, unlock := range l.held {
		unlock()
		delete(l.held, name)
	}
}

// lockUnused takes the locks that keep all processes from using and from making a
// root. The error is ErrInUse if one does already.
func lockUnused(locks lockDir, name string) (unlock func(), err error) {
	making, err := locks.try(name, unix.LOCK_EX)
	if err == nil {
		var using func()
		if using, err = locks.try(useLock(name), unix.LOCK_EX); err == nil {
			return func() { using(); making() }, nil
		}
		making()
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrInUse
	}
	return nil, fmt.Errorf("locking %s: %w", name, err)
}

// inUse reports whether any process uses or makes a root.
func inUse(locks lockDir, name string) bool {
	unlock, err := lockUnused(locks, name)
	if err == nil {
		unlock()
	}
	return errors.Is(err, ErrInUse)
}
