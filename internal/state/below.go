package state

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenBelow opens a folder below another, at. It follows no link, and does not go into another mount
// (EXDEV).
func OpenBelow(at int, path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd, err = openBelowBefore56(at, path, flags)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openBelowBefore56 is OpenBelow where openat2 is missing or refused, which Linux has since 5.6. There
// another mount is noticed only if it is another file system.
func openBelowBefore56(at int, path string, flags int) (fd int, err error) {
	var above, here unix.Stat_t
	if err := unix.Fstat(at, &above); err != nil {
		return 0, err
	}
	fd = at
	for part := range strings.SplitSeq(path, "/") {
		next, err := unix.Openat(fd, part, flags, 0)
		if fd != at {
			unix.Close(fd)
		}
		if err != nil {
			return 0, err
		}
		fd = next
	}
	if err := unix.Fstat(fd, &here); err != nil || here.Dev != above.Dev {
		unix.Close(fd)
		return 0, unix.EXDEV
	}
	return fd, nil
}
