package sandboxes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
)

// WriteLock writes the lock beside a script, whole or not at all, and returns its path. A
// link in its place is replaced, and not followed: the file that it leads to may be any.
// It then also returns where the link led.
func WriteLock(script string, lock []byte) (file, wasLinkTo string, err error) {
	file = lockFile(script)
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
	return file, wasLinkTo, state.Replace(file, lock, state.Options{Mode: mode})
}

// lockFile is the lock beside a script: pylock.STEM.toml (PEP 751).
func lockFile(script string) string {
	stem := strings.TrimSuffix(filepath.Base(script), filepath.Ext(script))
	return filepath.Join(filepath.Dir(script), "pylock."+strings.ReplaceAll(stem, ".", "_")+".toml")
}

// maxLock bounds a lock file, in bytes.
const maxLock = 8 << 20

// readLock returns the lock beside a script, nil if there is none.
func readLock(script string) ([]byte, error) {
	if script == "" {
		return nil, nil
	}
	lock, err := state.ReadRegular(lockFile(script), maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lock %s: %w", lockFile(script), err)
	}
	return lock, nil
}
