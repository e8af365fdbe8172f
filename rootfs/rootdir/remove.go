package rootdir

import (
	"os"
	"path"
)

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
