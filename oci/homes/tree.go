package homes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

const (
	maxDepth = 256     // of folders in each other: each is a file that is open
	maxFiles = 1 << 20 // that are looked at, with folders and links
	perRead  = 1024    // names that are in memory for each of these folders
)

// Errors of trees that are too large to look at as a whole.
var (
	errTooDeep = fmt.Errorf("it has folders in each other to a depth of more than %d", maxDepth)
	errTooMany = fmt.Errorf("it has more than %s files", text.Grouped(maxFiles))
	errEnough  = errors.New("it is large enough")
)

// openHome opens the home of a request.
func openHome(dir *os.File, r request) (*os.File, error) {
	return state.OpenBelow(int(dir.Fd()), filepath.Join(r.Folder, homeName))
}

// A visit looks at a file in a folder that is open.
type visit func(at int, name string, st *unix.Stat_t) error

// A walk goes through all that is in a folder. What vanishes meanwhile is left out.
type walk struct {
	ctx   context.Context
	files int64
	visit visit
}

// into visits what is in a folder, and then what is below.
func (w *walk) into(dir *os.File, depth int) error {
	for {
		names, err := dir.Readdirnames(perRead)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := w.file(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

func (w *walk) file(dir *os.File, name string, depth int) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return unlessGone(err)
	}
	if w.files++; w.files > maxFiles {
		return errTooMany
	}
	if err := w.visit(int(dir.Fd()), name, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	if depth == maxDepth {
		return errTooDeep
	}
	sub, err := state.OpenBelow(int(dir.Fd()), name)
	if errors.Is(err, unix.EXDEV) { // the user has mounted something there
		return nil
	}
	if err != nil {
		return unlessGone(err)
	}
	defer sub.Close()
	return w.into(sub, depth+1)
}

// unlessGone returns no error for a file that has gone, or has another in its place.
func unlessGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

// give gives all in a home to an ID, and last the home itself, so that a change that was interrupted
// is seen by its owner. It changes nothing if a file is in the way. The kernel takes setuid bits and
// capabilities from files with that. No file can have another name outside: a home is a mount of its
// own for the server, and link(2) refuses names in two mounts.
func give(ctx context.Context, dir *os.File, r request) error {
	home, err := openHome(dir, r)
	if err != nil {
		return err
	}
	defer home.Close()
	check := walk{ctx: ctx, visit: func(_ int, name string, st *unix.Stat_t) error {
		if !slices.Contains(r.Owners, int(st.Uid)) {
			return fmt.Errorf("%q in it belongs to another user: remove it", text.Bound(name, 100))
		}
		return nil
	}}
	if err := check.into(home, 1); err != nil {
		return err
	}
	if _, err := home.Seek(0, io.SeekStart); err != nil {
		return err
	}
	change := walk{ctx: ctx, visit: func(at int, name string, st *unix.Stat_t) error {
		if int(st.Uid) == r.UID && int(st.Gid) == r.GID {
			return nil
		}
		err := unix.Fchownat(at, name, r.UID, r.GID, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("giving %q in it to its server: %w", text.Bound(name, 100), err)
		}
		return nil
	}}
	if err := change.into(home, 1); err != nil {
		return err
	}
	return errors.Join(home.Chmod(0o700), home.Chown(r.UID, r.GID))
}
