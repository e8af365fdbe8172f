package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// maxPath is the kernel's limit of a path in a system call.
const maxPath = 4096

// maxNames bounds the memory for names of directories: real images stay below
// 10 MiB.
const maxNames = 256 << 20

// unpacker puts the layers of an image, lowest first, into one directory.
//
// A layer's names are resolved as if the directory were the root of the file
// system: ".." stops there and absolute symlinks begin there. The os.Root is
// the second line: it opens nothing outside, whatever the resolving got wrong.
type unpacker struct {
	root        *os.Root
	budget      *budget
	directories map[string]dirEntry // what to give them at the end
	layer       *layerPaths
	parent      parentCache
}

type dirEntry struct {
	mode  fs.FileMode
	mtime time.Time
}

// budget is what an image may still use.
type budget struct {
	maxBytes, bytes     int64
	maxEntries, entries int
	names               int
}

func newUnpacker(root *os.Root, maxBytes int64, maxEntries int) *unpacker {
	return &unpacker{
		root:        root,
		budget:      &budget{maxBytes: maxBytes, maxEntries: maxEntries},
		directories: map[string]dirEntry{},
	}
}

// unpack puts one layer on top of those before. It reads to the very end, where
// the reader says whether the digests were right.
func (u *unpacker) unpack(layer io.Reader) error {
	defer u.parent.forget()
	u.layer = newLayerPaths()
	// Everything of a tar that is not content is headers; this bounds floods
	// of them, and of zeros after the end.
	layer = &limitedReader{layer, u.budget.maxBytes + 4096*int64(u.budget.maxEntries)}
	for r := tar.NewReader(layer); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading tar: %w", err)
		}
		if err := u.entry(hdr, r); err != nil {
			return fmt.Errorf("unpacking %s: %w", short(hdr.Name), err)
		}
	}
	_, err := io.Copy(io.Discard, layer)
	return err
}

// entry unpacks one file, directory, link or whiteout.
func (u *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if err := u.budget.entry(hdr); err != nil {
		return err
	}
	name, err := clean(hdr.Name)
	if err != nil {
		return err
	}
	switch hdr.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil // comments of whoever made the tar
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return nil // a sandbox has its own /dev, and may make no devices
	}
	if name == "." {
		if hdr.Typeflag == tar.TypeDir {
			return nil // the root itself, whose mode is ours
		}
		return errors.New("only a directory can be the root")
	}
	dir, base := path.Split(name)
	if hidden, ok := strings.CutPrefix(base, whiteoutPrefix); ok {
		return u.whiteout(path.Clean(dir), hidden)
	}
	parent, err := u.openParent(path.Clean(dir))
	if err != nil {
		return err
	}
	return u.create(parent, base, hdr, content)
}

// create makes one entry in its parent directory, in the place of what an
// earlier layer or entry had there.
func (u *unpacker) create(parent parentDir, base string, hdr *tar.Header, content io.Reader) error {
	full := path.Join(parent.path, base)
	u.layer.add(full)
	if hdr.Typeflag == tar.TypeLink {
		return u.hardlink(parent, base, hdr.Linkname)
	}
	existing, err := u.clear(parent, base, hdr.Typeflag == tar.TypeDir)
	if err != nil {
		return err
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		if existing {
			return u.noteDir(full, hdr)
		}
		// The image's own mode comes at the end: it may forbid us to go in.
		if err := parent.root.Mkdir(base, 0o700); err != nil {
			return err
		}
		return u.noteDir(full, hdr)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(parent, base, hdr, content)
	case tar.TypeSymlink:
		return parent.root.Symlink(hdr.Linkname, base)
	}
	return fmt.Errorf("unknown type %q of tar entry", hdr.Typeflag)
}

// clear removes what has the name, and reports whether a directory stays there
// because a directory is to come.
func (u *unpacker) clear(parent parentDir, base string, dir bool) (stays bool, err error) {
	info, err := parent.root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir() && dir:
		return true, nil
	}
	return false, u.remove(path.Join(parent.path, base))
}

// remove removes a file or a whole directory. The path is a resolved one.
func (u *unpacker) remove(full string) error {
	u.parent.stale = true // the way to it may lead through what goes
	delete(u.directories, full)
	return u.root.RemoveAll(full)
}

func (u *unpacker) file(parent parentDir, base string, hdr *tar.Header, content io.Reader) (err error) {
	if err := u.budget.file(hdr.Size); err != nil {
		return err
	}
	f, err := parent.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	// Perm leaves out setuid and setgid: nothing in a sandbox may gain by them,
	// and on the host the file may belong to root.
	if err := f.Chmod(hdr.FileInfo().Mode().Perm()); err != nil {
		return err
	}
	return parent.root.Chtimes(base, sane(hdr.ModTime), sane(hdr.ModTime))
}

// hardlink links to a file that has been unpacked before. A symlink as target
// is linked itself, not what it points at.
func (u *unpacker) hardlink(parent parentDir, base, target string) error {
	target, err := clean(target)
	if err != nil {
		return err
	}
	dir, err := u.resolve(path.Dir(target), false)
	if err != nil {
		return fmt.Errorf("hard link to %s: %w", short(target), err)
	}
	old, full := path.Join(dir, path.Base(target)), path.Join(parent.path, base)
	info, err := u.root.Lstat(old)
	switch {
	case err != nil:
		return fmt.Errorf("hard link to %s: %w", short(target), err)
	case info.IsDir():
		return fmt.Errorf("hard link to the directory %s", short(target))
	case old == full:
		return errors.New("hard link to itself")
	}
	if _, err := u.clear(parent, base, false); err != nil {
		return err
	}
	return u.root.Link(old, full)
}

func (u *unpacker) noteDir(full string, hdr *tar.Header) error {
	if err := u.budget.name(full); err != nil {
		return err
	}
	info := hdr.FileInfo().Mode()
	u.directories[full] = dirEntry{
		// Its owner, who is us, must be able to list and to delete it.
		mode:  info.Perm() | info&fs.ModeSticky | 0o500,
		mtime: sane(hdr.ModTime),
	}
	return nil
}

// finish gives the directories their modes and times, which unpacking into them
// would have undone.
func (u *unpacker) finish() error {
	for full, d := range u.directories {
		real, err := u.resolve(full, false)
		if missing(err) || err == nil && real != full {
			continue // a later layer removed or replaced one above it
		}
		if err != nil {
			return err
		}
		if err := u.root.Chmod(full, d.mode); err != nil {
			return err
		}
		if err := u.root.Chtimes(full, d.mtime, d.mtime); err != nil {
			return err
		}
	}
	return nil
}
