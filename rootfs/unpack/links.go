package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

// linkContent links a content to its name, or copies it.
func (m *Merger) linkContent(parent parentDir, base string, e *entry) error {
	content := contentFile(m.layerDir, e.File)
	err := unix.Linkat(unix.AT_FDCWD, content, parent.fd(), base, 0)
	switch {
	case err == nil:
		return nil
	case cannotLink(err):
		from, err := openContent(content)
		if err != nil {
			return err
		}
		return m.copyFile(parent, base, from, e)
	}
	return &os.LinkError{Op: "link", Old: content, New: path.Join(parent.path, base), Err: err}
}

// cannotLink reports whether a file has to be copied: some file systems have no hard links,
// and all limit their number.
func cannotLink(err error) bool {
	for _, e := range []error{unix.EMLINK, unix.EPERM, unix.EOPNOTSUPP, unix.EXDEV, unix.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// copyFile copies a file to a name, with the mode and the time of an entry, and
// closes it.
func (m *Merger) copyFile(parent parentDir, base string, from *os.File, e *entry) (err error) {
	defer from.Close()
	if err := m.budget.spendBytes(e.Size); err != nil {
		return err
	}
	f, err := parent.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	if err := f.Chmod(e.Mode); err != nil {
		return err
	}
	return parent.setTime(base, e.Time)
}

// openContent opens a content for reading, even if its mode forbids that to the owner.
func openContent(name string) (*os.File, error) {
	f, err := os.Open(name)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, info.Mode()|0o400); err != nil {
		return nil, err
	}
	f, err = os.Open(name)
	return f, errors.Join(err, os.Chmod(name, info.Mode()))
}

// linkExisting links to a file that was merged before. If the target is a symlink, it links
// to the symlink itself; if it is a device, it leaves the link out.
func (m *Merger) linkExisting(parent parentDir, base, target string) error {
	target, err := rootdir.Clean(target)
	if err != nil {
		return err
	}
	if err := rootdir.CheckName(path.Base(target)); err != nil {
		return fmt.Errorf("hard link: %w", err)
	}
	from, dir, err := m.others.Find(path.Dir(target))
	if err != nil {
		return fmt.Errorf("hard link to %s: %w", rootdir.Quote(target), err)
	}
	old, full := path.Join(dir, path.Base(target)), path.Join(parent.path, base)
	info, err := from.Lstat(path.Base(target))
	if _, device := m.devices[old]; device && rootdir.IsMissing(err) {
		return m.leaveOut(parent, base)
	}
	switch {
	case err != nil:
		return fmt.Errorf("hard link to %s: %w", rootdir.Quote(target), err)
	case info.IsDir():
		return fmt.Errorf("hard link to the directory %s", rootdir.Quote(target))
	case old == full:
		return errors.New("hard link to itself")
	}
	return m.replace(parent, base, func() error {
		err := m.root.Link(old, full)
		if !cannotLink(err) || !info.Mode().IsRegular() {
			return err
		}
		file, err := m.root.Open(old)
		if err != nil {
			return err
		}
		return m.copyFile(parent, base, file, &entry{Size: info.Size(), Mode: info.Mode().Perm(), Time: info.ModTime()})
	})
}
