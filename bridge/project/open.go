package project

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens the folder, whose path must have no link.
func (x *index) open() error {
	top, err := retried(func() (int, error) { return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return err
	}
	defer unix.Close(top)
	below := strings.TrimPrefix(x.root, "/")
	if below == "" {
		below = "."
	}
	x.fd, err = x.openBelow(top, below, unix.O_PATH|unix.O_DIRECTORY)
	return err
}

// openIn opens a path in the folder, which has no "..". No link is followed: a descriptor with
// O_PATH may be of one, and if one has taken the place of a folder on the way, or flags ask for
// more, the error is ELOOP or ENOTDIR.
func (x *index) openIn(at string, flags int) (fd int, err error) { return x.openBelow(x.fd, at, flags) }

func (x *index) openBelow(top int, at string, flags int) (fd int, err error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !x.stepwise {
		how := &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		fd, err = retried(func() (int, error) { return unix.Openat2(top, at, how) })
		// Linux before 5.6 lacks it, and containers may refuse it.
		if x.stepwise = errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM); !x.stepwise {
			return fd, err
		}
	}
	return openStepwise(top, at, flags)
}

// openStepwise opens a path without openat2: each folder on the way from the one above it.
func openStepwise(top int, at string, flags int) (fd int, err error) {
	fd = top
	for part, rest, more := "", at, true; more; {
		how := flags
		if part, rest, more = strings.Cut(rest, "/"); more {
			how = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		next, err := retried(func() (int, error) { return unix.Openat(fd, part, how, 0) })
		if fd != top {
			unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// retried calls open again while a signal interrupts it.
func retried(open func() (int, error)) (fd int, err error) {
	for {
		if fd, err = open(); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
