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
// that it sweeps the folders of instances that are gone.
func openInstance(dir string) (own string, lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	sweep(dir)
	own, err = os.MkdirTemp(dir, "instance-")
	if err != nil {
		return "", nil, err
	}
	lock, err = os.OpenFile(filepath.Join(own, lockName), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(own))
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", nil, errors.Join(os.NewSyscallError("flock", err), lock.Close())
	}
	return own, lock, nil
}

// sweep ends and removes the sandboxes of instances that no longer live. What
// cannot be removed now is left for the next start.
func sweep(dir string) {
	instances, _ := filepath.Glob(filepath.Join(dir, "instance-*"))
	for _, inst := range instances {
		lock, err := os.OpenFile(filepath.Join(inst, lockName), os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			// Without a lock file it is being made at this moment, or being
			// removed; an empty folder of a crash in between does no harm.
			os.Remove(inst)
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			sweepInstance(inst)
		}
		lock.Close()
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
