package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

// A Merger merges the layers of an image, lowest first, into one directory. Contents of files
// are linked from the layers' folders, not copied.
//
// A layer's names resolve as if the directory were the root of the file system
// (package rootdir).
type Merger struct {
	root     *os.Root
	budget   *Budget
	dirs     map[string]dirEntry // for SetDirModes
	devices  map[string]struct{} // paths of devices and pipes, which are not created
	layerDir string              // folder of the current layer
	paths    *layerPaths

	parent     parentDir // of the last entry
	parentName string    // its name in the layer
	parents    *rootdir.Resolver
	others     *rootdir.Resolver // to whiteouts and the targets of hard links
}

type dirEntry struct {
	mode  fs.FileMode
	mtime time.Time
}

// NewMerger merges layers into root, which is empty.
func NewMerger(root *os.Root, b *Budget) *Merger {
	return &Merger{
		root: root, budget: b, dirs: map[string]dirEntry{}, devices: map[string]struct{}{},
		parents: rootdir.NewResolver(root), others: rootdir.NewResolver(root),
	}
}

// Merge adds a layer on top of the previous ones.
func (m *Merger) Merge(ctx context.Context, layerDir string) error {
	defer m.closeDirs()
	m.paths, m.layerDir = newLayerPaths(), layerDir
	return readEntries(entriesFile(layerDir), func(e *entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.addEntry(e); err != nil {
			return fmt.Errorf("unpacking %s: %w", rootdir.Quote(e.Name), err)
		}
		return nil
	})
}

// addEntry merges one file, directory, link or whiteout.
func (m *Merger) addEntry(e *entry) error {
	name, err := rootdir.Clean(e.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if e.Type == tar.TypeDir {
			return nil // the root itself, which keeps our mode
		}
		return errors.New("only a directory can be the root")
	}
	dir, base := path.Split(name)
	hidden, isWhiteout := strings.CutPrefix(base, whiteoutPrefix)
	if err := rootdir.CheckName(hidden); err != nil { // base, if it is not a whiteout
		return err
	}
	if isWhiteout {
		return m.applyWhiteout(path.Clean(dir), hidden)
	}
	parent, err := m.openParent(path.Clean(dir))
	if err != nil {
		return err
	}
	return m.create(parent, base, e)
}

// create creates one entry in its parent directory, replacing that of an earlier layer or
// entry.
func (m *Merger) create(parent parentDir, base string, e *entry) error {
	full := path.Join(parent.path, base)
	m.paths.add(full)
	switch e.Type {
	case tar.TypeDir:
		return m.makeDirectory(parent, base, e)
	case tar.TypeLink:
		return m.linkExisting(parent, base, e.Link)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return m.leaveOut(parent, base)
	case tar.TypeSymlink:
		return m.replace(parent, base, func() error {
			if err := unix.Symlinkat(e.Link, parent.fd(), base); err != nil {
				return &os.LinkError{Op: "symlink", Old: e.Link, New: full, Err: err}
			}
			return parent.setTime(base, e.Time)
		})
	}
	return m.replace(parent, base, func() error { return m.linkContent(parent, base, e) })
}

// leaveOut removes what has the name of a device or pipe, and creates nothing: a sandbox has
// its own /dev, and may not create devices.
func (m *Merger) leaveOut(parent parentDir, base string) error {
	full := path.Join(parent.path, base)
	if err := m.budget.spendName(full); err != nil {
		return err
	}
	m.devices[full] = struct{}{}
	if _, err := parent.root.Lstat(base); rootdir.IsMissing(err) {
		return nil
	}
	return m.remove(full)
}

// replace creates something, after removing what has the name already.
func (m *Merger) replace(parent parentDir, base string, makeIt func() error) error {
	err := makeIt()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := m.remove(path.Join(parent.path, base)); err != nil {
		return err
	}
	return makeIt()
}

func (m *Merger) makeDirectory(parent parentDir, base string, e *entry) error {
	full := path.Join(parent.path, base)
	info, err := parent.root.Lstat(base)
	if err == nil && info.IsDir() {
		return m.keepDirMode(full, e)
	}
	// The image's own mode is set at the end, since it may deny us access.
	if err := m.replace(parent, base, func() error { return parent.root.Mkdir(base, 0o700) }); err != nil {
		return err
	}
	return m.keepDirMode(full, e)
}

// remove removes a file or a whole directory. The path is a resolved one.
func (m *Merger) remove(full string) error {
	m.parentName = "" // it may resolve differently now
	m.parents.Forget(full)
	m.others.Forget(full)
	delete(m.dirs, full)
	return m.root.RemoveAll(full)
}

// keepDirMode records the mode and time of a directory for SetDirModes.
func (m *Merger) keepDirMode(full string, e *entry) error {
	if err := m.budget.spendName(full); err != nil {
		return err
	}
	m.dirs[full] = dirEntry{mode: e.Mode, mtime: e.Time}
	return nil
}

// SetDirModes sets the modes and times of directories, which merging would have changed.
func (m *Merger) SetDirModes(ctx context.Context) error {
	w := rootdir.NewResolver(m.root)
	defer w.Close()
	for _, full := range slices.Sorted(maps.Keys(m.dirs)) { // so that the resolver moves little
		if err := ctx.Err(); err != nil {
			return err
		}
		dir, real, err := w.Find(full)
		if rootdir.IsMissing(err) || err == nil && real != full {
			continue // a later layer removed or replaced a parent
		}
		if err != nil {
			return err
		}
		d := m.dirs[full]
		if err := errors.Join(dir.Chmod(".", d.mode), dir.Chtimes(".", d.mtime, d.mtime)); err != nil {
			return err
		}
	}
	return nil
}

// parentDir is an open directory of the root.
type parentDir struct {
	root *os.Root // of Merger.parents
	dir  *os.File // the same, for system calls that os.Root lacks
	path string   // resolved
}

// fd is for calls with a name without a slash, which cannot lead elsewhere.
func (p parentDir) fd() int { return int(p.dir.Fd()) }

// setTime sets the time of a name, without following a symlink.
func (p parentDir) setTime(base string, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	err := unix.UtimesNanoAt(p.fd(), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	return os.NewSyscallError("utimensat", err)
}

// openParent opens the parent directory of an entry. It keeps the last one open, since the
// entries of a directory are adjacent in a layer.
func (m *Merger) openParent(dir string) (parentDir, error) {
	if m.parent.dir != nil && m.parentName == dir {
		return m.parent, nil
	}
	m.closeParent()
	root, full, err := m.parents.FindOrMake(dir)
	for _, made := range m.parents.Made() {
		delete(m.dirs, made) // of one that was removed with all that is in it
	}
	if err != nil {
		return parentDir{}, err
	}
	f, err := root.Open(".")
	if err != nil {
		return parentDir{}, err
	}
	m.parent, m.parentName = parentDir{root, f, full}, dir
	return m.parent, nil
}

func (m *Merger) closeParent() {
	if m.parent.dir != nil {
		m.parent.dir.Close()
	}
	m.parent = parentDir{}
}

// closeDirs closes all directories.
func (m *Merger) closeDirs() {
	m.closeParent()
	m.parents.Close()
	m.others.Close()
}
