package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// Remove removes an image, named as for Find. Named by one of several
// references it loses that name only. It returns how many bytes are free now.
// The error is ErrInUse if a process uses the image.
func (s *Store) Remove(name string) (freed int64, err error) {
	image, err := s.Find(name)
	if err != nil {
		return 0, err
	}
	if r, err := images.Parse(name); err == nil && len(image.Refs) > 1 {
		file := s.refFile(r)
		if _, err := os.Stat(file); err == nil {
			if err := os.Remove(file); err != nil {
				return 0, fmt.Errorf("removing the name %q: %w", name, err)
			}
			return 0, nil
		}
	}
	if err := s.removeImage(image); err != nil {
		return 0, fmt.Errorf("removing image %q: %w", name, err)
	}
	return s.collect()
}

// removeImage removes a root and its names. Its layers are left to collect.
func (s *Store) removeImage(image *Image) error {
	name := dirName(image.Digest)
	release, err := s.claim(name)
	if err != nil {
		return err
	}
	defer release()
	if err := s.forget(image.Digest); err != nil {
		return err
	}
	// Its first file to go is the one that makes it count as complete.
	dir := filepath.Join(s.dir, rootsFolder, name)
	if err := os.Remove(filepath.Join(dir, "image.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return rootdir.RemoveAll(dir)
}

// forget removes all names of an image.
func (s *Store) forget(digest string) error {
	files, err := os.ReadDir(filepath.Join(s.dir, "refs"))
	if err != nil {
		return err
	}
	for _, f := range files {
		var t tag
		file := filepath.Join(s.dir, "refs", f.Name())
		if readJSON(file, &t) == nil && t.Digest == digest {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// pullsLock is held, shared, by every pull, so that nobody takes its layers for
// superfluous before its image is there.
const pullsLock = "pulls"

// collect removes the layers that no image has any more, unless a pull goes on.
// It returns their size in bytes.
func (s *Store) collect() (freed int64, err error) {
	unlock, err := s.locks.try(pullsLock, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer unlock()
	needed := map[string]bool{}
	roots, err := filepath.Glob(filepath.Join(s.dir, rootsFolder, "*", "image.json"))
	if err != nil {
		return 0, err
	}
	for _, file := range roots {
		if rec := readRecord(file); rec != nil {
			for _, l := range rec.Layers {
				needed[dirName(l.DiffID)] = true
			}
		}
	}
	layers, err := os.ReadDir(filepath.Join(s.dir, layersFolder))
	if err != nil {
		return 0, err
	}
	for _, l := range layers {
		if needed[l.Name()] || strings.HasPrefix(l.Name(), tempPrefix) {
			continue
		}
		dir := filepath.Join(s.dir, layersFolder, l.Name())
		var rec layerRecord
		if readJSON(filepath.Join(dir, "layer.json"), &rec) == nil {
			freed += rec.Size
		}
		_ = os.Remove(filepath.Join(dir, "layer.json")) // as image.json above
		if rmErr := rootdir.RemoveAll(dir); rmErr != nil {
			err = errors.Join(err, rmErr)
		}
	}
	return freed, err
}

// Pruning says what Prune may remove. An image that has lost its name to a
// newer one goes in any case.
type Pruning struct {
	Unused time.Duration // images not used for so long; 0 for none
	Size   int64         // bytes that all images together may keep, those used last first; 0 for any number
}

// Prune removes images that are not in use. It returns them, and how many
// bytes are free now.
func (s *Store) Prune(p Pruning) (removed []Image, freed int64, err error) {
	all, err := s.List()
	if err != nil {
		return nil, 0, err
	}
	keep := map[string]int64{} // size of each layer that stays
	size := func(i Image) (more int64) {
		for _, l := range i.Layers {
			if _, ok := keep[l.DiffID]; !ok {
				more += l.Size
			}
		}
		return more
	}
	total := int64(0)
	// Images in use stay whatever they take, so they are counted first.
	slices.SortStableFunc(all, func(a, b Image) int { return boolCompare(b.InUse, a.InUse) })
	for _, i := range all {
		old := p.Unused > 0 && time.Since(i.LastUsed) > p.Unused
		large := p.Size > 0 && total+size(i) > p.Size
		if !i.InUse && (len(i.Refs) == 0 || old || large) {
			switch rmErr := s.removeImage(&i); {
			case rmErr == nil:
				removed = append(removed, i)
				continue
			case !errors.Is(rmErr, ErrInUse):
				err = errors.Join(err, fmt.Errorf("removing image %s: %w", i.Digest, rmErr))
			}
		}
		total += size(i)
		for _, l := range i.Layers {
			keep[l.DiffID] = l.Size
		}
	}
	freed, collectErr := s.collect()
	return removed, freed, errors.Join(err, s.removeForeign(), collectErr)
}

// removeForeign removes roots that no version of this program can use any more:
// those of an older format, and damaged ones.
func (s *Store) removeForeign() (err error) {
	folders, err := filepath.Glob(filepath.Join(s.dir, rootsFolder, "sha256-*"))
	for _, dir := range folders {
		if readRecord(filepath.Join(dir, "image.json")) != nil {
			continue
		}
		// Whoever is about to make it has its lock.
		if release, claimErr := s.claim(filepath.Base(dir)); claimErr == nil {
			err = errors.Join(err, rootdir.RemoveAll(dir))
			release()
		}
	}
	return err
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
