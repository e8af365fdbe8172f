// Package statefile reads and writes the small files that this program keeps:
// JSON, readable by the user only, replaced as a whole and locked while they
// change, so that several processes can share them.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A File is a map in a file at Path.
type File[T any] struct{ Path string }

// maxStateFile bounds such a file.
const maxStateFile = 4 << 20

const lockPoll = 20 * time.Millisecond

// Read returns what is recorded, empty if there is no file.
func (r File[T]) Read() (map[string]T, error) {
	all := map[string]T{}
	data, err := ReadRegular(r.Path, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %s; correct or remove it", r.Path, Reason(err))
	}
	return all, nil
}

// Change calls f with what is recorded and writes the result, under a lock that
// keeps other processes out.
func (r File[T]) Change(f func(map[string]T)) (err error) {
	unlock, err := Lock(context.Background(), r.Path+".lock")
	if err != nil {
		return fmt.Errorf("locking %s: %w", r.Path, err)
	}
	defer unlock()
	all, err := r.Read()
	if err != nil {
		return err
	}
	f(all)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := Replace(r.Path, append(data, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", r.Path, err)
	}
	return nil
}

// Replace writes a file, mode 0600, whole or not at all, and syncs it before the
// rename. The caller must hold a lock that covers it: the temporary name is
// always the same, so that a file left by a killed process, which may hold
// secrets, is overwritten.
func Replace(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}

// Lock takes a lock between processes, waiting until ctx ends. The lock file
// stays: removing it would let two processes hold the lock.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another process holds %s: %w", path, context.Cause(ctx))
		}
	}
}
