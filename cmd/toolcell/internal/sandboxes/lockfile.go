package sandboxes

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteLock writes the lock beside a script, whole or not at all, and returns its path. A
// link in its place is replaced, and not followed: the file that it leads to may be any.
// It then also returns where the link led.
func WriteLock(script string, lock []byte) (file, wasLinkTo string, err error) {
	file = LockFile(script)
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the lock: %w", err)
		}
	}()
	mode := fs.FileMode(0o644)
	info, statErr := os.Lstat(file)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
	case statErr != nil:
		return "", "", statErr
	case info.Mode()&fs.ModeSymlink != 0:
		if wasLinkTo, err = os.Readlink(file); err != nil {
			return "", "", err
		}
	case !info.Mode().IsRegular():
		return "", "", fmt.Errorf("%s is not a regular file", file)
	default:
		mode = info.Mode().Perm()
	}
	return file, wasLinkTo, replaceFile(file, lock, mode)
}

// replaceFile writes a file beside, under a name that nobody can have foreseen, and renames
// it.
func replaceFile(file string, content []byte, mode fs.FileMode) (err error) {
	beside := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+"."+rand.Text())
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(beside))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(beside, file)
}
