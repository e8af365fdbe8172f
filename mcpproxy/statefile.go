package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A stateFile is a small file of this program that several processes may change:
// JSON, for the user alone, always whole.
type stateFile[T any] struct{ path string }

// maxStateFile bounds such a file.
const maxStateFile = 4 << 20

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
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(r.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", r.path, err)
	}
	all, err := r.read()
	if err != nil {
		return err
	}
	f(all)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	// CreateTemp makes it readable by the user alone.
	temp, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(append(data, '\n'))
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", r.path, err)
	}
	return os.Rename(temp.Name(), r.path)
}
