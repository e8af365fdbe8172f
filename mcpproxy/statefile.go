package mcpproxy

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

// A stateFile is a small file of this program that several processes may change:
// JSON, for the user alone, always whole.
type stateFile[T any] struct{ path string }

// maxStateFile bounds such a file.
const maxStateFile = 4 << 20

const lockPoll = 20 * time.Millisecond

func (r stateFile[T]) read() (map[string]T, error) {
	all := map[string]T{}
	data, err := readRegular(r.path, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %s; correct or remove it", r.path, reason(err))
	}
	return all, nil
}

// change lets a function change what is recorded, while no other process does.
func (r stateFile[T]) change(f func(map[string]T)) (err error) {
	unlock, err := lockFile(context.Background(), r.path+".lock")
	if err != nil {
		return fmt.Errorf("locking %s: %w", r.path, err)
	}
	defer unlock()
	all, err := r.read()
	if err != nil {
		return err
	}
	f(all)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(r.path, append(data, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", r.path, err)
	}
	return nil
}

// replaceFile writes a file for its owner alone, whole or not at all, and on the
// disk before it has its name. The caller has a lock that covers it: the
// temporary name is always the same, so that what a killed process left, which
// may hold secrets, is overwritten and not left for ever.
func replaceFile(path string, data []byte) (err error) {
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

// lockFile takes a lock between processes. The file stays: to remove it would
// let two hold it.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
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
