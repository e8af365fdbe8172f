package rootdir

import (
	"os"
	"path"
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
)

// MakeDir creates a directory that every user may search, whatever the umask is. An image may
// have made its parent read-only.
func MakeDir(root *os.Root, dir string) (err error) {
	if parent := path.Dir(dir); parent != "." {
		info, err := root.Lstat(parent)
		if err != nil {
			return err
		}
		if info.Mode()&0o200 == 0 {
			if err := root.Chmod(parent, info.Mode()|0o200); err != nil {
				return err
			}
		}
	}
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return root.Chmod(dir, 0o755)
}

// MakeFile writes a file that every user may read, and creates its parent directories.
func MakeFile(root *os.Root, name, content string) error {
	if err := MakeDirs(root, filepath.Dir(name)); err != nil {
		return err
	}
	if err := root.WriteFile(name, []byte(content), 0o644); err != nil {
		return err
	}
	return root.Chmod(name, 0o644)
}

// MakeDirs creates a directory and its parents, open to every user.
func MakeDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if _, err := root.Lstat(dir); err == nil {
		return nil
	}
	if err := MakeDirs(root, filepath.Dir(dir)); err != nil {
		return err
	}
	return MakeDir(root, dir)
}

// MakeInside creates something in a directory of the image that may be read-only, and
// restores the directory's mode and time.
func MakeInside(root *os.Root, dir string, makeIt func() error) error {
	info, err := root.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&0o200 == 0 {
		if err := root.Chmod(dir, info.Mode()|0o200); err != nil {
			return err
		}
		defer func() { _ = root.Chmod(dir, info.Mode()) }()
	}
	if err := makeIt(); err != nil {
		return err
	}
	return root.Chtimes(dir, info.ModTime(), info.ModTime())
}

// ReplaceFile replaces a file atomically: code may be running on the root. It does not write
// to the old file, such as outdated bytecode, which may belong to other images too.
func ReplaceFile(root *os.Root, name string, content []byte) error {
	return state.ReplaceIn(root, name, content, state.Options{Mode: 0o644, Exact: true, Unsynced: true})
}

// RemoveAll removes a directory and its contents, even if an image has directories that their
// owner may not write to.
func RemoveAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		// If it is a link, nothing must be changed at its target.
		return os.RemoveAll(dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	makeWritable(root, ".")
	return os.RemoveAll(dir)
}

// makeWritable makes all directories of a tree writable for their owner. It ignores errors:
// the removal after it names the file that remains.
func makeWritable(root *os.Root, dir string) {
	_ = root.Chmod(dir, 0o700)
	entries, _ := ReadDir(root, dir)
	for _, e := range entries {
		if e.IsDir() {
			makeWritable(root, path.Join(dir, e.Name()))
		}
	}
}
