package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/spec"
)

// Bounds on a folder, so that a run does not wait long for it, and on the mounts that hide
// something of it.
const (
	maxFolders = 50_000
	maxEntries = 1_000_000
	maxHidden  = 512
	maxTime    = 10 * time.Second
	maxPath    = 3000 // bytes; the kernel takes 4096
)

// An index is what was read of a folder: only folders that have changed are read again.
type index struct {
	root string
	top  *folder

	stepwise bool // openat2 is missing

	// What one look finds.
	fd               int // of the root
	hidden           []string
	folders, entries int
	until            time.Time
}

// A folder is one that was read.
type folder struct {
	stamp   state.Stamp
	sure    bool     // nothing can have changed since without another stamp
	inGit   bool     // it is .git or below it
	closed  bool     // it is hidden itself
	entries int      // names in it
	hidden  []string // those of them to hide
	links   []string // those that would be hidden, and lead elsewhere
	inside  map[string]*folder
}

func newIndex(root string) *index { return &index{root: root, top: &folder{}} }

// look returns the paths in the folder that are to be hidden, sorted, without those that are
// in others. No link is followed on the way. What it has read when ctx ends is of use to the next.
func (x *index) look(ctx context.Context) (hidden []string, err error) {
	if err := x.open(); err != nil {
		return nil, notShown(x.root, err.Error(), "")
	}
	defer unix.Close(x.fd)
	x.hidden, x.folders, x.entries, x.until = nil, 0, 0, time.Now().Add(maxTime)
	if err := x.visit(ctx, x.top, "."); err != nil {
		return nil, err
	}
	if x.top.closed {
		return nil, notShown(x.root, "only its owner may enter it", "to change that: chmod o+rx "+text.ShellWord(x.root))
	}
	slices.Sort(x.hidden)
	return spec.Uppermost(x.hidden), nil
}

// goOn returns why a look is to end before it has seen all, nil if it may go on.
func (x *index) goOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if time.Now().After(x.until) {
		return x.tooLarge(fmt.Sprintf("looking through it takes longer than %s", maxTime))
	}
	return nil
}

// count adds names of a folder to those of all.
func (x *index) count(entries int) error {
	if x.entries += entries; x.entries > maxEntries {
		return x.tooLarge(fmt.Sprintf("it has more than %d files", maxEntries))
	}
	return nil
}

// visit collects what is hidden in the folder at a path, and in the folders in it.
func (x *index) visit(ctx context.Context, f *folder, at string) error {
	if x.folders++; x.folders > maxFolders {
		return x.tooLarge(fmt.Sprintf("it has more than %d folders", maxFolders))
	}
	if len(at) > maxPath {
		return x.tooLarge("it is nested too deep")
	}
	if err := x.goOn(ctx); err != nil {
		return err
	}
	if there, err := x.refresh(ctx, f, at); !there || err != nil {
		return x.gone(ctx, f, at, err)
	}
	if f.closed {
		return x.hide(at)
	}
	for _, name := range f.hidden {
		if err := x.hide(path.Join(at, name)); err != nil {
			return err
		}
	}
	for _, name := range f.links {
		if err := x.goOn(ctx); err != nil { // one may lead through many others
			return err
		}
		if to := x.follow(path.Join(at, name)); to != "" {
			if err := x.hide(to); err != nil {
				return err
			}
		}
	}
	for name, in := range f.inside {
		if err := x.visit(ctx, in, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// refresh reads the names in the folder at a path if they may have changed, and reports whether
// there is a folder.
func (x *index) refresh(ctx context.Context, f *folder, at string) (there bool, err error) {
	fd, err := x.openIn(at, unix.O_PATH)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	now, err := state.StampOfFD(fd, at)
	if err != nil || now.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, err
	}
	if f.sure && f.stamp == now {
		return true, x.count(f.entries)
	}
	return true, x.read(ctx, f, fd, at, now)
}

// gone handles a folder that cannot be looked into. One that was removed meanwhile hides
// nothing, and one that we may not read is hidden as a whole.
func (x *index) gone(ctx context.Context, f *folder, at string, err error) error {
	*f = folder{inGit: f.inGit}
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		if at == "." {
			return notShown(x.root, "it is no longer a folder", "")
		}
		return nil
	case errors.Is(err, fs.ErrPermission) && at != ".":
		return x.hide(at)
	case errors.As(err, new(*boundError)):
		return err
	}
	return notShown(x.root, err.Error(), "")
}

// hide adds a path to what is hidden.
func (x *index) hide(at string) error {
	switch {
	case at == ".": // look refuses it
		return nil
	case !utf8.ValidString(at): // libcontainer gets it as JSON
		return notShown(x.root, fmt.Sprintf("%q would have to be hidden, and its name is not UTF-8", at), "")
	case len(x.hidden) == maxHidden:
		return x.tooLarge(fmt.Sprintf("more than %d files in it would have to be hidden", maxHidden))
	}
	x.hidden = append(x.hidden, at)
	return nil
}

// A boundError says that a folder is too large.
type boundError struct{ error }

func (x *index) tooLarge(why string) error {
	return &boundError{notShown(x.root, why, "give code a smaller folder with --mounts (TOOLCELL_MOUNTS), such as "+text.ShellWord(path.Join(x.root, "src")+":/src"))}
}

// batch is how many names are read at a time.
const batch = 1024

// read reads the names in a folder, which fd is of.
func (x *index) read(ctx context.Context, f *folder, fd int, at string, seen state.Stamp) error {
	old := f.inside
	*f = folder{inGit: f.inGit, stamp: seen}
	if !canEnter(fd, seen) || at != "." && x.mountedOn(fd, seen) {
		f.closed, f.sure = true, true
		return nil
	}
	fd, err := retried(func() (int, error) {
		return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), at)
	defer dir.Close()
	sure := seen.Settled() && isSteady(fd)
	var git gitFolder
	for {
		entries, err := dir.ReadDir(batch)
		for _, e := range entries {
			f.add(e, old)
			git.look(e)
		}
		f.entries += len(entries)
		if err := x.count(len(entries)); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := x.goOn(ctx); err != nil {
			return err
		}
	}
	if !f.inGit && git.is() {
		f.hidden = append(f.hidden, "config")
	}
	f.sure = sure
	return nil
}

// add adds a name of the folder; old are folders in it that were read before. Code could
// reach processes of the host through sockets and pipes.
func (f *folder) add(e fs.DirEntry, old map[string]*folder) {
	name, kind := e.Name(), e.Type()
	switch {
	case isGit(name) && kind&fs.ModeSymlink != 0:
		f.links = append(f.links, name+"/config")
	case isHidden(name, f.inGit) && kind&fs.ModeSymlink != 0:
		f.links = append(f.links, name)
	case isHidden(name, f.inGit), kind&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeIrregular) != 0:
		f.hidden = append(f.hidden, name)
	case kind.IsDir():
		if f.inside == nil {
			f.inside = map[string]*folder{}
		}
		in := old[name]
		if in == nil {
			in = &folder{inGit: f.inGit || isGit(name)}
		}
		f.inside[name] = in
	}
}

// canEnter reports whether files in a folder can be hidden one by one: only those who may enter
// it can mount there, and root's sandboxes have IDs that own nothing. Otherwise it is hidden as
// a whole, also for the time when it may be entered.
func canEnter(fd int, seen state.Stamp) bool {
	var st unix.Stat_t
	user := os.Geteuid()
	return seen.Mode&0o001 != 0 || user != 0 && unix.Fstat(fd, &st) == nil && int(st.Uid) == user
}

// mountedOn reports whether another file system is mounted on a folder. Sandboxes see such
// folders as empty anyway. Subvolumes of Btrfs have device numbers of their own, too.
func (x *index) mountedOn(fd int, seen state.Stamp) bool {
	if seen.Dev == x.top.stamp.Dev {
		return false
	}
	var sx unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, 0, &sx)
	return err == nil && sx.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && sx.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// steady are the file systems of this machine whose folders always get another time when a
// name in them changes. Others may be changed by other machines, which this one learns late.
var steady = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
}

// isSteady reports whether a folder is on one of them.
func isSteady(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && slices.Contains(steady, st.Type)
}
