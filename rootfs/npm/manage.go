package npm

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// List returns all layers, the last used first.
func (s *Store) List() ([]Layer, error) {
	dirs, err := state.Match(s.layers.dir, "sha256-*")
	if err != nil {
		return nil, err
	}
	var all []Layer
	for _, dir := range dirs {
		if l := s.layers.read(filepath.Base(dir)); l != nil {
			all = append(all, *l)
		}
	}
	slices.SortFunc(all, byUse)
	return all, nil
}

// byUse orders layers, the last used first.
func byUse(a, b Layer) int { return b.LastUsed.Compare(a.LastUsed) }

// Prune removes the layers that have not been used for some time and are not in use, partly
// removed layers, and layers of other versions. It returns the layers that it removed.
func (s *Store) Prune(unused time.Duration) (removed []Layer, err error) {
	dirs, err := state.Match(s.layers.dir, "sha256-*")
	for _, dir := range dirs {
		name := filepath.Base(dir)
		l := s.layers.read(name)
		if l != nil && time.Since(l.LastUsed) < unused {
			continue
		}
		removeErr := s.Remove(name)
		if l != nil && removeErr == nil {
			removed = append(removed, *l)
		}
		if !errors.Is(removeErr, cachedir.ErrInUse) {
			err = errors.Join(err, removeErr)
		}
	}
	slices.SortFunc(removed, byUse)
	return removed, err
}

// Remove removes the layer with an ID. The error is a cachedir.ErrInUse if any process uses
// or makes it, this one too unless it has released it.
func (s *Store) Remove(id string) error {
	if !idForm().MatchString(id) {
		return errors.New("that is not the ID of a layer")
	}
	unlock, err := s.cache.LockUnused(id)
	if err != nil {
		return err
	}
	defer unlock()
	return cachedir.Remove(s.layers.path(id), recordFile)
}

// Release lets any process remove a layer that Ensure returned, once no sandbox of this
// process has it.
func (s *Store) Release(id string) { s.cache.Release(id) }
