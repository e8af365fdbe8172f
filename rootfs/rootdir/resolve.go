package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Limits of a path. Without them, a layer of a few kilobytes could keep us busy for hours:
// each of its names can lead through all directories that it has created.
const (
	MaxPath  = 4095 // bytes, as in a system call
	MaxName  = 255  // bytes of one part, as in most file systems
	MaxDepth = 256  // directories; real images have some 30

	maxSymlinks = 40   // the kernel's limit in one path
	maxParts    = 1024 // of a path and of its symlinks, together
)

// A Resolver finds directories of a root. It keeps the directories on the path to the last one
// open, since the next path is often similar.
type Resolver struct {
	root *os.Root
	way  []step   // from the root to the directory
	made []string // by the last call
}

type step struct {
	name string // in the directory before
	path string // from the root, without symlinks
	dir  *os.Root
}

// NewResolver returns a Resolver that has to be closed.
func NewResolver(root *os.Root) *Resolver { return &Resolver{root: root} }

// Close closes the directories except the root.
func (w *Resolver) Close() { w.cut(0) }

// Find resolves symlinks and returns a directory and its real path. The directory is open
// until the next call.
func (w *Resolver) Find(dir string) (*os.Root, string, error) {
	return w.walk(dir, false)
}

// FindOrMake is like Find, but creates missing directories.
func (w *Resolver) FindOrMake(dir string) (*os.Root, string, error) {
	return w.walk(dir, true)
}

// Made returns the real paths of the directories that the last FindOrMake created, also if it
// failed.
func (w *Resolver) Made() []string { return w.made }

// Forget closes a directory that will be removed or replaced, named by its real path.
func (w *Resolver) Forget(removed string) {
	for n, s := range w.way {
		if s.path == removed {
			w.cut(n)
			return
		}
	}
}

// walk goes to a directory, and creates missing ones if make is set.
func (w *Resolver) walk(dir string, make bool) (*os.Root, string, error) {
	rest, parts, links := w.goShared(strings.Split(dir, "/")), 0, 0
	w.made = nil
	for len(rest) > 0 {
		if parts++; parts > maxParts {
			return nil, "", fmt.Errorf("%s leads through more than %d names", Quote(dir), maxParts)
		}
		target, err := w.step(rest[0], make)
		if err != nil {
			return nil, "", err
		}
		rest = rest[1:]
		if target == "" {
			continue
		}
		if links++; links > maxSymlinks {
			return nil, "", fmt.Errorf("too many symlinks in %s", Quote(dir))
		}
		if path.IsAbs(target) {
			w.cut(0)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	at, full := w.here()
	return at, full, nil
}

// step enters a name in the directory, or returns its target if it is a symlink.
func (w *Resolver) step(name string, make bool) (target string, err error) {
	switch name {
	case "", ".":
		return "", nil
	case "..":
		w.cut(max(len(w.way)-1, 0)) // the parent of the root is the root
		return "", nil
	}
	at, full := w.here()
	next := path.Join(full, name)
	if err := checkPath(next, name); err != nil {
		return "", err
	}
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !make {
			return "", fs.ErrNotExist
		}
		if err = MakeDir(at, name); err == nil {
			w.made = append(w.made, next)
			info, err = at.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", w.enter(at, name, next)
	case info.Mode()&fs.ModeSymlink != 0:
		return at.Readlink(name)
	}
	return "", fmt.Errorf("%w: %s", errNotDir, Quote(next))
}

// goShared goes back to the last directory that the new path shares with the current one, and
// returns the rest of the new path.
func (w *Resolver) goShared(parts []string) (rest []string) {
	n := 0
	for n < len(parts) && n < len(w.way) && parts[n] == w.way[n].name {
		n++
	}
	w.cut(n)
	return parts[n:]
}

func (w *Resolver) here() (dir *os.Root, full string) {
	if len(w.way) == 0 {
		return w.root, "."
	}
	last := w.way[len(w.way)-1]
	return last.dir, last.path
}

func (w *Resolver) enter(at *os.Root, name, full string) error {
	if len(w.way) >= MaxDepth {
		return fmt.Errorf("%s is more than %d directories deep", Quote(full), MaxDepth)
	}
	dir, err := at.OpenRoot(name)
	if err != nil {
		return err
	}
	w.way = append(w.way, step{name, full, dir})
	return nil
}

// cut keeps only the first n directories open.
func (w *Resolver) cut(n int) {
	for _, s := range w.way[n:] {
		s.dir.Close()
	}
	w.way = w.way[:n]
}

// CheckName refuses names that no file system supports.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("the name %s has %d bytes, more than the limit of %d", Quote(name), len(name), MaxName)
	}
	return nil
}

func checkPath(full, name string) error {
	if len(full) > MaxPath {
		return fmt.Errorf("with its symlinks the path has more than %d bytes: %s", MaxPath, Quote(full))
	}
	return CheckName(name)
}

// Resolve resolves the symlinks in the path of a directory.
func Resolve(root *os.Root, dir string) (string, error) {
	w := NewResolver(root)
	defer w.Close()
	_, real, err := w.Find(dir)
	return real, err
}

// ResolveFile resolves all symlinks in a path, including the last one. A name before ".." is
// followed first, as the kernel does.
func ResolveFile(root *os.Root, file string) (string, error) {
	w := NewResolver(root)
	defer w.Close()
	for range maxSymlinks {
		end := strings.LastIndexByte(file, '/') + 1
		name := file[end:]
		if name == "" || name == "." || name == ".." { // a directory
			_, dir, err := w.Find(file)
			return dir, err
		}
		at, dir, err := w.Find(file[:end])
		if err != nil {
			return "", err
		}
		info, err := at.Lstat(name)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path.Join(dir, name), nil
		}
		target, err := at.Readlink(name)
		if err != nil {
			return "", err
		}
		if file = target; !path.IsAbs(target) {
			file = dir + "/" + target
		}
	}
	return "", errors.New("too many symlinks")
}
