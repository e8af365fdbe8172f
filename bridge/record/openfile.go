package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrNotRegular is of a link, a pipe or a folder in the place of a file.
var ErrNotRegular = errors.New("not a regular file")

// OpenFile opens a file of the record. What else stands in its place is an ErrNotRegular: through a
// link the record would be elsewhere, and a pipe keeps nothing. Flags are those of os.OpenFile; a file that is made
// is for this user alone.
func OpenFile(path string, flags int) (*os.File, error) {
	// Without O_NONBLOCK a pipe would wait for another process.
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, notRegular(path)
	} else if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, cmp.Or(err, notRegular(path))
	}
	return f, nil
}

func notRegular(path string) error { return fmt.Errorf("%s is %w; remove it", path, ErrNotRegular) }

// makeFolder makes the folder of a day, which no link may stand for: readers would not find it.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder but a link; remove it", path)
	}
	return err
}
