// Package cachedir keeps folders of a cache that several processes of the user share:
// locks between them, folders that get their name only when they are complete, and small
// files of JSON.
//
// It promises that nothing a killed process leaves is taken for complete, and that the next
// process removes it.
package cachedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// A Cache is a folder that several processes of the user share: its locks, by name, and
// which of its folders this process uses. It is safe for concurrent use.
//
// A lock is held against other processes and against other goroutines of this one alike,
// as each call has its own open file, and the kernel drops it if the process dies. Lock
// files stay: removing one would let two holders lock two files of one name.
type Cache struct {
	Dir     string // absolute, and without symlinks once its folders are made
	folders []string

	mu   sync.Mutex
	held map[string]func() // releases each folder that this process uses, by name
}

// Open returns the cache in dir, and makes it and those of its folders that are missing.
// If that fails, the cache is returned with the error, and tries again in each Wait.
func Open(dir string, folders ...string) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	c := &Cache{Dir: dir, folders: folders, held: map[string]func(){}}
	if err == nil {
		err = c.makeFolders()
	}
	if err != nil {
		return c, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		c.Dir = real
	}
	return c, err
}

// makeFolders creates missing folders. Whatever the umask is, the IDs of a sandbox, which
// are not the user's, can search them.
func (c *Cache) makeFolders() error {
	for _, name := range append([]string{"", "locks"}, c.folders...) {
		path := filepath.Join(c.Dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// CheckOwn returns an *UntrustedError if another user can change what is in the cache.
func (c *Cache) CheckOwn() error { return CheckOwn(c.Dir, c.folders...) }

func (c *Cache) lockFile(name string) string { return filepath.Join(c.Dir, "locks", name) }

// useLock is the name of the lock that processes share while they use a folder. The
// folder's own name is that of the lock while it is made or checked.
func useLock(name string) string { return "use-" + name }

// Wait takes a lock as soon as it is free.
func (c *Cache) Wait(ctx context.Context, name string, kind state.Kind) (unlock func(), err error) {
	// The user may have removed the whole cache meanwhile.
	if err := c.makeFolders(); err != nil {
		return nil, err
	}
	unlock, err = state.Lock(ctx, c.lockFile(name), kind)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return unlock, err
}

// Try takes a lock if it is free; the error is state.ErrLocked if not.
func (c *Cache) Try(name string, kind state.Kind) (unlock func(), err error) {
	f, err := state.TryLock(c.lockFile(name), os.O_CREATE, kind)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// IfFree takes a lock if it is free. Unlock is nil if it is not free, or on an error.
func (c *Cache) IfFree(name string) (unlock func(), err error) {
	unlock, err = c.Try(name, state.Exclusive)
	if errors.Is(err, state.ErrLocked) {
		err = nil
	}
	return unlock, err
}

// ErrInUse is in the chain of an error when a folder cannot be removed because a
// process may be using it.
var ErrInUse = errors.New("it is in use by another process")

// Acquire keeps all processes from removing a folder, until Release or the end of this
// process. It reports false if the folder is being removed.
func (c *Cache) Acquire(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[name] != nil {
		return true
	}
	unlock, err := c.Try(useLock(name), state.Shared)
	// Another process may only be checking whether it is in use (InUse).
	for n := 0; n < 5 && errors.Is(err, state.ErrLocked); n++ {
		time.Sleep(time.Millisecond)
		unlock, err = c.Try(useLock(name), state.Shared)
	}
	if errors.Is(err, state.ErrLocked) {
		return false
	}
	// A cache that another user shares with us, read-only, takes no locks.
	if err == nil {
		c.held[name] = unlock
	}
	return true
}

// Release releases a folder.
func (c *Cache) Release(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unlock := c.held[name]; unlock != nil {
		unlock()
		delete(c.held, name)
	}
}

// ReleaseAll releases all folders.
func (c *Cache) ReleaseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, unlock := range c.held {
		unlock()
		delete(c.held, name)
	}
}

// LockUnused takes the locks that keep all processes from using and from making a
// folder. The error is ErrInUse if one does already.
func (c *Cache) LockUnused(name string) (unlock func(), err error) {
	making, err := c.Try(name, state.Exclusive)
	if err == nil {
		var using func()
		if using, err = c.Try(useLock(name), state.Exclusive); err == nil {
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
func (c *Cache) InUse(name string) bool {
	unlock, err := c.LockUnused(name)
	if err == nil {
		unlock()
	}
	return errors.Is(err, ErrInUse)
}

// An UntrustedError means that other users can change the contents of a folder, so that it
// must not be used: sandboxes would import what they put there. Cure is for the user.
type UntrustedError struct{ Dir, Why, Cure string }

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("%s %s, so what is in it is not used", e.Dir, e.Why)
}

// CheckOwn returns an *UntrustedError if another user can change the contents of a folder or
// of its subfolders with these names. It skips those that do not exist.
func CheckOwn(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue // its user reports the error
		}
		if err := checkOwn(path, info, os.Geteuid()); err != nil {
			return err
		}
	}
	return nil
}

func checkOwn(path string, info os.FileInfo, euid int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &UntrustedError{path, "has no owner that is known", "use another folder (TOOLCELL_STATE_DIR)"}
	}
	const elsewhere = ", or use another folder (TOOLCELL_STATE_DIR)"
	another := int(st.Uid) != euid && st.Uid != 0 && (st.Uid != state.UnmappedID || !inUserNamespace())
	switch {
	case another:
		return &UntrustedError{path, "belongs to another user", "remove it, give it back with chown -R" + elsewhere}
	case state.OthersWrite(info.Mode(), int(st.Uid), int(st.Gid)):
		return &UntrustedError{path, "can be written to by other users", "chmod go-w " + path + ", after a look at what they may have put there" + elsewhere}
	}
	return nil
}

// inUserNamespace reports whether some IDs of the host are not mapped.
func inUserNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(ids)), " ") != "0 0 4294967295"
}
