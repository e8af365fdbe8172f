// Package state has what processes that share files need: locks between them,
// files that are replaced as a whole, stamps that tell whether a file has
// changed, folders that drop unused files, and small maps of JSON.
//
// It promises that a killed process leaves no lock behind, and in place of a file
// either the old one or the new one. No other package locks files, replaces them by
// rename or compares their times itself; a test has the exceptions.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// A File is a map in a file at Path: JSON, readable by the user only, replaced as a whole
// and locked while it changes, so that several processes can share it.
type File[T any] struct{ Path string }

// maxStateFile bounds such a file.
const maxStateFile = 4 << 20

// Read returns the map, empty if there is no file.
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

// Change calls f with the map and writes the result, under a lock that keeps other processes
// out.
func (r File[T]) Change(f func(map[string]T)) (err error) {
	unlock, err := Lock(context.Background(), r.Path+".lock", Exclusive)
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
	if err := Replace(r.Path, append(data, '\n'), Options{Locked: true}); err != nil {
		return fmt.Errorf("writing %s: %w", r.Path, err)
	}
	return nil
}
