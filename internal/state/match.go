package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Match returns the paths of what a folder holds under names that match a pattern
// (filepath.Match), in order: none if there is no such folder. Unlike filepath.Glob it takes
// the folder's own name as it is, whatever characters a user has put into it.
func Match(dir, pattern string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // a file where it would be
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		fits, err := filepath.Match(pattern, e.Name())
		if err != nil {
			return nil, err
		}
		if fits {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}
