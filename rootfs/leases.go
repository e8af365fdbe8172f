package rootfs

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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
