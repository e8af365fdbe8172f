package footprint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
)

// A Removal is what was removed of a kind.
type Removal struct {
	Kind  Kind     `json:"kind"`
	Freed int64    `json:"freed"` // bytes, as Found.Freed says; Remove leaves it at 0
	Left  []string `json:"left,omitempty"`
	Error string   `json:"error,omitempty"` // why something is left

	failed int
	owned  func(path string) (removed bool, err error) // removes a folder unless it is not one of Owned; nil if there are none
}

// maxFailures bounds Removal.Left: they are shown to the user.
const maxFailures = 20

// Remove removes the files of some kinds, except those whose path keep returns true for. One that
// cannot be removed does not keep it from the others. If ctx ends it leaves the rest, whole or in
// part; a part of an image, layer, set or wheel does not count as one.
func (f *Found) Remove(ctx context.Context, kinds []Kind, keep func(path string) bool) (done []Removal) {
	for _, kind := range kinds {
		if f.Use(kind).Files == 0 {
			continue
		}
		r := Removal{Kind: kind}
		for _, i := range f.items {
			if i.kind == kind && !i.folder && !keep(i.full()) && ctx.Err() == nil {
				r.item(ctx, i)
			}
		}
		for _, i := range f.items {
			if i.kind == kind && i.folder && i.path != "." && ctx.Err() == nil {
				_ = unix.Unlinkat(int(i.place.dir.Fd()), i.path, unix.AT_REMOVEDIR) // unless something is in it
			}
		}
		if r.failed > len(r.Left) {
			r.Left = append(r.Left, fmt.Sprintf("and %d more", r.failed-len(r.Left)))
		}
		done = append(done, r)
	}
	return done
}

// RemovePlaces removes the places that are empty now, and the folders above them that are and that
// may have been made for them, also above places that have gone since Look. It returns those that are not empty.
func (f *Found) RemovePlaces() (left []string) {
	places := slices.Clone(f.places)
	slices.SortStableFunc(places, func(a, b *opened) int { return cmp.Compare(len(b.Dir), len(a.Dir)) })
	for _, p := range places {
		switch _, err := os.Lstat(p.Dir); {
		case errors.Is(err, os.ErrNotExist): // uninstalling has removed it
		case !state.InPlace(p.dir):
			continue // it was moved or replaced meanwhile
		case unix.Rmdir(p.Dir) != nil:
			if p.Role != IDs {
				left = append(left, p.Dir)
			}
			continue
		}
		above := filepath.Dir(p.Dir)
		for range p.Up {
			if unix.Rmdir(above) != nil { // something is in it
				break
			}
			above = filepath.Dir(above)
		}
	}
	return left
}

// item removes an item.
func (r *Removal) item(ctx context.Context, i item) {
	_ = makeWritable(i.place.dir) // what it keeps from being removed is said then
	at, closeAt, err := i.parent()
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.fail(i.full(), err)
		}
		return
	}
	defer closeAt()
	isIDs := i.place.Role == IDs || filepath.Base(i.path) == "uids"
	if isIDs && inUse(filepath.Join(i.place.Dir, "uids")) {
		return // by a process with another state folder
	}
	r.owned = nil
	if o := i.place.Owned; o != nil && i.kind == Homes {
		r.owned = func(path string) (bool, error) {
			below, _ := filepath.Rel(i.place.Dir, path)
			if ok, _ := filepath.Match(i.counted(), below); !ok {
				return false, nil
			}
			return true, o.Remove(ctx, path)
		}
	}
	r.remove(ctx, at, filepath.Base(i.path), i.full())
}

// inUse reports whether a process has locked a file.
func inUse(path string) bool {
	f, err := state.TryLock(path, unix.O_NOFOLLOW, state.Exclusive)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return errors.Is(err, state.ErrLocked)
}

// remove removes a file, or a folder with all that is in it, and reports whether it is gone.
func (r *Removal) remove(ctx context.Context, at int, name, path string) bool {
	if ctx.Err() != nil {
		return false
	}
	var st unix.Stat_t
	err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return true
	case err != nil:
		return r.fail(path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return r.fail(path, err)
		}
		return true
	}
	if r.owned != nil {
		if removed, err := r.owned(path); err != nil {
			return r.fail(path, err)
		} else if removed {
			return true
		}
	}
	if gone, err := r.empty(ctx, at, name, path); !gone {
		if err != nil {
			r.fail(path, err)
		}
		return false
	}
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return r.fail(path, err)
	}
	return true
}

// empty removes what is in a folder. Images have folders that their owner may not write to.
func (r *Removal) empty(ctx context.Context, at int, name, path string) (all bool, err error) {
	dir, err := state.OpenBelow(at, name)
	if errors.Is(err, unix.EACCES) {
		if err = chmodNoFollow(at, name); err == nil {
			dir, err = state.OpenBelow(at, name)
		}
	}
	if errors.Is(err, unix.EXDEV) {
		return false, errors.New("another file system or folder is mounted there: unmount it first")
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if err := makeWritable(dir); err != nil {
		return false, err
	}
	names, err := namesIn(dir)
	if err != nil {
		return false, err
	}
	// The record of an image, layer, set or wheel goes first: without it nothing takes the rest for one.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	all = true
	for _, inside := range names {
		all = r.remove(ctx, int(dir.Fd()), inside, path+"/"+inside) && all
	}
	return all, nil
}

func rank(name string) int {
	if strings.HasSuffix(name, ".json") {
		return 0
	}
	return 1
}

// makeWritable makes a folder writable for its owner.
func makeWritable(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil || info.Mode().Perm()&0o300 == 0o300 {
		return err
	}
	return dir.Chmod(info.Mode().Perm() | 0o700)
}

// chmodNoFollow opens a folder to its owner; a link that has come in its place is an error.
func chmodNoFollow(at int, name string) error {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}

// fail notes what could not be removed. It always returns false.
func (r *Removal) fail(path string, err error) bool {
	if r.failed++; len(r.Left) < maxFailures {
		r.Left = append(r.Left, path)
	}
	r.Error = cmp.Or(r.Error, state.Reason(err))
	return false
}
