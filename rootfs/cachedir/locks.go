// Package cachedir keeps folders of a cache that several processes of the user share:
// locks between them, folders that get their name only when they are complete, and small
// files of JSON.
//
// It promises that whatever a killed process leaves is not taken for complete, and
// that the next process removes it.
package cachedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// Locks are the lock files of a cache, by name. A lock is held against other
// processes and against other goroutines of this one alike, as each call has its
// own open file, and the kernel drops it if the process dies. Lock files stay:
// removing one would let two holders lock two files of one name.
type Locks struct {
	dir         string
	makeFolders func() error
}

// NewLocks keeps lock files in dir. makeFolders makes the folders of the cache, dir
// too, where they are missing.
func NewLocks(dir string, makeFolders func() error) Locks { return Locks{dir, makeFolders} }

// useLock is the name of the lock that processes share while they use a folder. The
// folder's own name is that of the lock while it is made or checked.
func useLock(name string) string { return "use-" + name }

// Wait takes a lock as soon as it is free.
func (d Locks) Wait(ctx context.Context, name string, kind state.Kind) (unlock func(), err error) {
	// The user may have removed the whole cache meanwhile.
	if err := d.makeFolders(); err != nil {
		return nil, err
	}
	unlock, err = state.Lock(ctx, filepath.Join(d.dir, name), kind)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return unlock, err
}

// Try takes a lock if it is free; the error is state.ErrLocked if not.
func (d Locks) Try(name string, kind state.Kind) (unlock func(), err error) {
	f, err := state.TryLock(filepath.Join(d.dir, name), os.O_CREATE, kind)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// ErrInUse is in the chain of an error when a folder cannot be removed because a
// process may be using it.
var ErrInUse = errors.New("it is in use by another process")

// Leases are the folders that this process uses and that no process may remove. The
// kernel ends them with the process, however it dies.
type Leases struct {
	locks Locks

	mu   sync.Mutex
	held map[string]func() // what gives a folder free, by name
}

// NewLeases returns those of a process that holds none yet.
func NewLeases(locks Locks) *Leases { return &Leases{locks: locks, held: map[string]func(){}} }

// Acquire takes a lease of a folder. It reports false if the root is being removed.
func (l *Leases) Acquire(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return true
	}
	unlock, err := l.locks.Try(useLock(name), state.Shared)
	// Another process may only be looking whether it is in use (InUse).
	for range 5 {
		if !errors.Is(err, state.ErrLocked) {
			break
		}
		time.Sleep(time.Millisecond)
		unlock, err = l.locks.Try(useLock(name), state.Shared)
	}
	if errors.Is(err, state.ErrLocked) {
		return false
	}
	// A cache that another user shares with us, read-only, takes no locks.
	if err == nil {
		l.held[name] = unlock
	}
	return true
}

// Release gives a folder free.
func (l *Leases) Release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unlock := l.held[name]; unlock != nil {
		unlock()
		delete(l.held, name)
	}
}

// ReleaseAll gives all free.
func (l *Leases) ReleaseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, unlock := range l.held {
		unlock()
		delete(l.held, name)
	}
}

// LockUnused takes the locks that keep all processes from using and from making a
// folder. The error is ErrInUse if one does already.
func LockUnused(locks Locks, name string) (unlock func(), err error) {
	making, err := locks.Try(name, state.Exclusive)
	if err == nil {
		var using func()
		if using, err = locks.Try(useLock(name), state.Exclusive); err == nil {
			return func() { using(); making() }, nil
		}
		making()
	}
	if errors.Is(err, state.ErrLocked) {
		err = ErrInUse
	}
	return nil, fmt.Errorf("locking %s: %w", name, err)
}

// InUse reports whether any process uses or makes a folder.
func InUse(locks Locks, name string) bool {
	unlock, err := LockUnused(locks, name)
	if err == nil {
		unlock()
	}
	return errors.Is(err, ErrInUse)
}
