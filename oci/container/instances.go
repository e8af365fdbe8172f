package container

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"golang.org/x/sys/unix"
)

// An Instance is a process that runs sandboxes, now or until it was killed.
type Instance struct {
	Dir     string // its folder
	Running bool
	PID     int       // 0 if it does not run, or in another container
	Since   time.Time // when it began
}

// lockWithin bounds the waiting for the lock of a state folder, which is held for moments.
const lockWithin = 2 * time.Second

// Instances returns the processes that have a folder in dir, none if no process ever had one.
func Instances(dir string) (all []Instance, err error) {
	release, all, err := HoldStarts(dir)
	if err == nil {
		release()
	}
	return all, err
}

// HoldStarts returns the same as Instances, and keeps other processes from becoming one until
// release is called.
func HoldStarts(dir string) (release func(), all []Instance, err error) {
	if _, err := os.Stat(filepath.Join(dir, lockName)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return func() {}, nil, nil // no instance was ever here: making the lock would be a change
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	release, err = state.Lock(ctx, filepath.Join(dir, lockName), state.Exclusive)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil, nil // another process is removing the folder
	}
	if err != nil {
		return nil, nil, err
	}
	found, err := state.Match(dir, "instance-*")
	if err != nil {
		release()
		return nil, nil, err
	}
	for _, inst := range found {
		if i, ok := instanceAt(inst); ok {
			all = append(all, i)
		}
	}
	return release, all, nil
}

// instanceAt looks at the folder of an instance. The caller has the lock of the state folder.
func instanceAt(dir string) (i Instance, ok bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return i, false
	}
	lock := filepath.Join(dir, lockName)
	i = Instance{Dir: dir, Since: info.ModTime()}
	if info, err := os.Lstat(lock); err == nil {
		i.Since = info.ModTime()
	}
	f, err := state.TryLock(lock, 0, state.Exclusive)
	switch {
	case err == nil:
		f.Close()
	case errors.Is(err, state.ErrLocked):
		i.Running, i.PID = true, state.Holder(lock)
	}
	return i, true
}

// Sweep ends and removes the sandboxes that killed processes left in dir. The caller holds starts.
func Sweep(dir string) { sweep(dir) }
