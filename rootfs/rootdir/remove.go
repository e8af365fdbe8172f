package rootdir

import (
	"os"
	"path"
)

// RemoveAll removes a directory and all in it, also where an image has put
// directories that their owner may not write to.
func RemoveAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		// A link, if it is one, must not lead us to change what is elsewhere.
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

// makeWritable lets the owner change all directories of a tree. Errors are left
// to the removal after it, which names the file that stays.
func makeWritable(root *os.Root, dir string) {
	_ = root.Chmod(dir, 0o700)
	entries, _ := ReadDir(root, dir)
	for _, e := range entries {
		if e.IsDir() {
			makeWritable(root, path.Join(dir, e.Name()))
		}
	}
}
