package project

import (
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

	// What one look finds.
	dir              *os.File // the root
	fd               int      // of it
	hidden           []string
	folders, entries int
	until            time.Time
}

// A folder is one that was read.
type folder struct {
	stamp  state.Stamp
	sure   bool     // nothing can have changed since without another stamp
	inGit  bool     // it is .git or below it
	closed bool     // it is hidden itself
	hidden []string // names in it
	links  []string // names in it that would be hidden, and lead elsewhere
	inside map[string]*folder
}

func newIndex(root string) *index { return &index{root: root, top: &folder{}} }

// look returns the paths in the folder that are to be hidden, sorted, without those that are
// in others. No link is followed on the way.
func (x *index) look() (hidden []string, err error) {
	if err := x.open(); err != nil {
		return nil, notShown(x.root, err.Error(), "")
	}
	defer x.dir.Close()
	x.hidden, x.folders, x.entries, x.until = nil, 0, 0, time.Now().Add(maxTime)
	if err := x.visit(x.top, "."); err != nil {
		return nil, err
	}
	if x.top.closed {
		return nil, notShown(x.root, "only its owner may enter it", "to change that: chmod o+rx "+text.ShellWord(x.root))
	}
	slices.Sort(x.hidden)
	return spec.Uppermost(x.hidden), nil
}

func (x *index) open() (err error) {
	x.fd, err = unix.Open(x.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	x.dir = os.NewFile(uintptr(x.fd), x.root)
	return err
}

// visit collects what is hidden in the folder at a path, and in the folders in it.
func (x *index) visit(f *folder, at string) error {
	if x.folders++; x.folders > maxFolders {
		return x.tooLarge(fmt.Sprintf("it has more than %d folders", maxFolders))
	}
	if len(at) > maxPath {
		return x.tooLarge("it is nested too deep")
	}
	if x.folders%256 == 0 && time.Now().After(x.until) {
		return x.tooLarge(fmt.Sprintf("looking through it takes longer than %s", maxTime))
	}
	now, err := state.StampIn(x.dir, at)
	if err != nil || now.Mode&unix.S_IFMT != unix.S_IFDIR {
		return x.gone(f, at, err)
	}
	if !f.sure || f.stamp != now {
		if err := x.read(f, at, now); err != nil {
			return x.gone(f, at, err)
		}
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
		if to := x.follow(path.Join(at, name)); to != "" {
			if err := x.hide(to); err != nil {
				return err
			}
		}
	}
	for name, in := range f.inside {
		if err := x.visit(in, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// gone handles a folder that cannot be looked into. One that was removed meanwhile hides
// nothing, and one that we may not read is hidden as a whole.
func (x *index) gone(f *folder, at string, err error) error {
	*f = folder{inGit: f.inGit}
	switch {
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
	return &boundError{notShown(x.root, why, "give code a smaller folder with --mounts (MCP_BRIDGE_MOUNTS), such as "+text.ShellWord(path.Join(x.root, "src")+":/src"))}
}

// read reads the names in a folder.
func (x *index) read(f *folder, at string, seen state.Stamp) error {
	old := f.inside
	*f = folder{inGit: f.inGit, stamp: seen}
	if !x.canEnter(at, seen) || at != "." && x.mountedOn(at, seen) {
		f.closed, f.sure = true, true
		return nil
	}
	fd, err := unix.Openat(x.fd, at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), at)
	defer dir.Close()
	if f.stamp, err = state.StampOfFile(dir); err != nil {
		return err
	}
	sure := f.stamp.Settled() && isSteady(fd)
	var git gitFolder
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			f.add(e, old)
			git.look(e)
		}
		if x.entries += len(entries); x.entries > maxEntries {
			return x.tooLarge(fmt.Sprintf("it has more than %d files", maxEntries))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
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
func (x *index) canEnter(at string, seen state.Stamp) bool {
	var st unix.Stat_t
	user := os.Geteuid()
	return seen.Mode&0o001 != 0 || user != 0 && unix.Fstatat(x.fd, at, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && int(st.Uid) == user
}

// mountedOn reports whether another file system is mounted on a folder. Sandboxes see such
// folders as empty anyway. Subvolumes of Btrfs have device numbers of their own, too.
func (x *index) mountedOn(at string, seen state.Stamp) bool {
	if seen.Dev == x.top.stamp.Dev {
		return false
	}
	var sx unix.Statx_t
	err := unix.Statx(x.fd, at, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &sx)
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
