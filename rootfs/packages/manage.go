package packages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// List returns all sets, the last used first.
func (s *Store) List() ([]Set, error) {
	dirs, err := state.Match(s.sets.dir, "sha256-*")
	if err != nil {
		return nil, err
	}
	var all []Set
	for _, dir := range dirs {
		if set := s.sets.read(filepath.Base(dir)); set != nil {
			all = append(all, *set)
		}
	}
	slices.SortFunc(all, byUse)
	return all, nil
}

// byUse orders sets, the last used first.
func byUse(a, b Set) int { return b.LastUsed.Compare(a.LastUsed) }

// Find returns the set whose ID begins with id.
func (s *Store) Find(id string) (*Set, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	id = strings.TrimPrefix(id, "sha256-")
	var found *Set
	for i, set := range all {
		if id == "" || !strings.HasPrefix(strings.TrimPrefix(set.ID, "sha256-"), id) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%q begins the IDs of several sets", id)
		}
		found = &all[i]
	}
	if found == nil {
		return nil, fmt.Errorf("there is no set of packages %q; toolcell packages list shows those that are here", id)
	}
	return found, nil
}

// Prune removes the sets that have not been used for some time and are not in use, partly
// removed sets, sets of other versions, and then the wheels that no set has. It returns
// the sets, and how many bytes the wheels took.
func (s *Store) Prune(unused time.Duration) (removed []Set, freed int64, err error) {
	dirs, err := state.Match(s.sets.dir, "sha256-*")
	for _, dir := range dirs {
		name := filepath.Base(dir)
		set := s.sets.read(name)
		if set != nil && time.Since(set.LastUsed) < unused {
			continue
		}
		removeErr := s.removeSet(name)
		if set != nil && removeErr == nil {
			removed = append(removed, *set)
		}
		if !errors.Is(removeErr, cachedir.ErrInUse) {
			err = errors.Join(err, removeErr)
		}
	}
	slices.SortFunc(removed, byUse)
	freed, wheelsErr := s.removeUnusedWheels()
	return removed, freed, errors.Join(err, wheelsErr, s.forgetRequests())
}

// removeSet removes a set.
func (s *Store) removeSet(name string) error {
	unlock, err := s.cache.LockUnused(name)
	if err != nil {
		return err
	}
	defer unlock()
	return cachedir.Remove(s.sets.path(name), "set.json")
}

// removeUnusedWheels removes the wheels that no set has, unless a set is being built.
func (s *Store) removeUnusedWheels() (freed int64, err error) {
	unlock, err := s.cache.IfFree(wheelsLock)
	if unlock == nil {
		return 0, err
	}
	defer unlock()
	all, err := s.List()
	if err != nil {
		return 0, err
	}
	keep := map[string]bool{}
	for _, set := range all {
		for _, p := range set.Packages {
			keep[wheelName(p.SHA256)] = true
		}
	}
	dirs, err := state.Match(s.wheels.dir, "sha256-*")
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if keep[name] {
			continue
		}
		if rec := s.wheels.load(name); rec != nil {
			freed += rec.Bytes
		}
		err = errors.Join(err, cachedir.Remove(dir, "wheel.json"))
	}
	return freed, err
}

// forgottenAfter is how long the lock of a request is kept at least: a script that runs
// again within this time gets the same versions, even if its set is gone.
const forgottenAfter = 90 * 24 * time.Hour

// forgetRequests removes the records of old requests whose sets are gone.
func (s *Store) forgetRequests() (err error) {
	files, err := state.Match(filepath.Dir(s.knownFile("")), "sha256-*.json")
	for _, file := range files {
		info, statErr := os.Stat(file)
		if statErr != nil || time.Since(info.ModTime()) <= forgottenAfter {
			continue
		}
		var k known
		if cachedir.ReadJSON(file, &k) == nil && s.sets.read(k.Set) != nil {
			continue // without it the set could not be found
		}
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
