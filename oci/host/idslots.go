package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/toolcell/toolcell/internal/state"
	"golang.org/x/sys/unix"
)

// IDSlots gives each sandbox its own ID of a range, so that sandboxes share none of the
// kernel's limits per ID: pipe pages, descriptors in flight, epoll watches, keys. A taken ID
// is a locked byte of a file that all processes of a user share. The kernel releases the
// locks of a process that ends. IDSlots is safe for concurrent use.
type IDSlots struct {
	ids IDRange

	mu     sync.Mutex
	file   *os.File // nil if IDs are reserved only within this process
	err    error    // why there is no file
	taken  map[int64]bool
	next   int64 // where to look first, from 0
	shared bool
}

// OpenIDSlots prepares to give out these IDs, which belong to the user uid.
func OpenIDSlots(ids IDRange, uid int) *IDSlots {
	s := &IDSlots{ids: ids, taken: map[int64]bool{}}
	if ids.Size > 0 {
		// Processes that cannot share the file most likely get different IDs.
		s.next = rand.Int64N(ids.Size)
		s.file, s.err = openShared(uid)
	}
	return s
}

// openShared opens the file in which IDs are locked. Its path does not depend on settings: it
// must be the same for all processes of the user.
func openShared(uid int) (*os.File, error) {
	var errs []error
	for _, dir := range IDFolders(uid) {
		f, err := openIn(dir, uid)
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// IDFolders returns the folders in which that file may be: the first of them in which it can be made
// has it.
func IDFolders(uid int) []string {
	first := "/run/toolcell"
	if uid != 0 {
		first = "/run/user/" + strconv.Itoa(uid) + "/toolcell"
	}
	return []string{first, "/tmp/toolcell-" + strconv.Itoa(uid)}
}

// openIn opens the file in dir, creating dir if needed. In /tmp anyone can make a folder or a
// link of that name, so dir must be a folder of the user that only the user may write to.
func openIn(dir string, uid int) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if int(st.Uid) != uid || st.Mode&0o022 != 0 {
		return nil, fmt.Errorf("%s belongs to uid %d and has mode %04o: others may write to it", dir, st.Uid, st.Mode&0o7777)
	}
	path := dir + "/uids"
	id, err := unix.Openat(fd, "uids", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// systemd removes old files, but not those that are locked (tmpfiles.d(5)).
	file := os.NewFile(uintptr(id), path)
	_ = state.TryLockFile(file, state.Shared)
	return file, nil
}

// An IDSlot is the ID of one sandbox.
type IDSlot struct {
	ID    int64
	slots *IDSlots // nil once it is released, or if it is shared
}

// Acquire returns an ID for a sandbox, nil if the range is empty. If all are taken, it is
// shared with another sandbox.
func (s *IDSlots) Acquire() *IDSlot {
	if s.ids.Size <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.ids.Size {
		// Not the one released last: the kernel may still be freeing its resources.
		id := s.ids.Start + s.next
		s.next = (s.next + 1) % s.ids.Size
		if !s.taken[id] && s.lock(id, unix.F_WRLCK) {
			s.taken[id] = true
			return &IDSlot{ID: id, slots: s}
		}
	}
	s.shared = true
	return &IDSlot{ID: s.ids.Start + rand.Int64N(s.ids.Size)}
}

// Release makes the ID available to other sandboxes, once everything in this one has ended.
// Further calls do nothing.
func (o *IDSlot) Release() {
	if o == nil || o.slots == nil {
		return
	}
	s := o.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock(o.ID, unix.F_UNLCK)
	delete(s.taken, o.ID)
	o.slots = nil
}

// lock sets or releases the lock of an ID, and reports false if another process has it. The
// lock belongs to the open file, so closing a copy of the descriptor does not release it
// (fcntl(2), F_OFD_SETLK).
func (s *IDSlots) lock(id int64, kind int16) bool {
	if s.file == nil {
		return true
	}
	l := unix.Flock_t{Type: kind, Start: id, Len: 1}
	err := unix.FcntlFlock(s.file.Fd(), unix.F_OFD_SETLK, &l)
	return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES)
}

// Notes returns what the user should know.
func (s *IDSlots) Notes() (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		notes = append(notes, "sandboxes of two toolcell processes may get the same user ID: "+s.err.Error())
	}
	if s.shared {
		notes = append(notes, fmt.Sprintf("all %d user IDs of sandboxes were taken, so some shared one", s.ids.Size))
	}
	return notes
}

// Close releases all ids.
func (s *IDSlots) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
