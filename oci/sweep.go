package oci

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"
)

// lockName is the file in an instance's folder that the instance holds locked
// as long as it lives. The kernel lets go of it however the process ends.
const lockName = "lock"

// openInstance makes a folder of our own in dir and holds it locked. Before
// that it sweeps the folders of instances that are gone. Instances take turns:
// one that has no lock yet would look to another like one that is gone.
func openInstance(dir string) (own string, lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	turn, err := lockFile(filepath.Join(dir, lockName), os.O_CREATE, unix.LOCK_EX)
	if err != nil {
		return "", nil, err
	}
	defer turn.Close()
	sweep(dir)
	own, err = os.MkdirTemp(dir, "instance-")
	if err != nil {
		return "", nil, err
	}
	lock, err = lockFile(filepath.Join(own, lockName), os.O_CREATE, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(own))
	}
	return own, lock, nil
}

// lockFile opens a file with the given flags and locks it. Closing it, or the
// end of the process, lets go of the lock.
func lockFile(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), f.Close())
	}
	return f, nil
}

// sweep ends and removes the sandboxes of instances that no longer live. What
// cannot be removed now is left for the next start.
func sweep(dir string) {
	instances, _ := filepath.Glob(filepath.Join(dir, "instance-*"))
	for _, inst := range instances {
		lock, err := lockFile(filepath.Join(inst, lockName), 0, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			sweepInstance(inst)
			lock.Close()
		case errors.Is(err, os.ErrNotExist):
			// It ends at this moment, or was killed before it had a lock; it
			// is removed only if it is empty.
			os.Remove(inst)
		}
		// Otherwise it lives.
	}
}

func sweepInstance(inst string) {
	entries, err := os.ReadDir(inst)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		// Load compares the start time of the process with the one noted, so
		// that a stranger with the same pid is not killed.
		c, err := libcontainer.Load(inst, e.Name())
		if errors.Is(err, libcontainer.ErrNotExist) {
			continue // it never got as far as to have a process
		}
		if err != nil || destroy(c) != nil {
			return
		}
	}
	os.RemoveAll(inst)
}
