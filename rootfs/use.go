package rootfs

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse is in the chain of an error when an image cannot be removed because
// a process may be running code on it.
var ErrInUse = errors.New("the image is in use by another process")

// hold notes that this process uses a root, so that nobody removes it. It
// reports false if it is being removed. The kernel lets go of it when the
// process ends, in whatever way.
func (s *Store) hold(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] != nil {
		return true
	}
	unlock, err := s.locks.try(useLock(name), unix.LOCK_SH)
	// Somebody may only be looking whether it is in use (inUse).
	for range 5 {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(time.Millisecond)
		unlock, err = s.locks.try(useLock(name), unix.LOCK_SH)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false
	}
	// A store that somebody else shares with us, read-only, takes no locks.
	if err == nil {
		s.held[name] = unlock
	}
	return true
}

// release lets others remove a root again.
func (s *Store) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if unlock := s.held[name]; unlock != nil {
		unlock()
		delete(s.held, name)
	}
}

// Close lets go of all roots: others may remove them.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, unlock := range s.held {
		unlock()
		delete(s.held, name)
	}
	return nil
}

func useLock(name string) string { return "use-" + name }

// claim makes sure that no process uses or makes the root with a name, as long
// as the claim is held.
func (s *Store) claim(name string) (release func(), err error) {
	making, err := s.locks.try(name, unix.LOCK_EX)
	if err == nil {
		var using func()
		if using, err = s.locks.try(useLock(name), unix.LOCK_EX); err == nil {
			return func() { using(); making() }, nil
		}
		making()
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrInUse
	}
	return nil, fmt.Errorf("claiming %s: %w", name, err)
}

// inUse reports whether any process uses or makes the root with a name.
func (s *Store) inUse(name string) bool {
	release, err := s.claim(name)
	if err == nil {
		release()
	}
	return errors.Is(err, ErrInUse)
}
