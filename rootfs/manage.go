package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/text"
)

// List returns the images of the store, most recently used first.
func (s *Store) List() ([]Image, error) {
	refs, err := s.tags.refs()
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	all, err := s.images.list(refs)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	return all, nil
}

// Find returns the image with a reference, or with a digest that begins with name, with or
// without "sha256:".
func (s *Store) Find(name string) (*Image, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	if r, err := images.Parse(name); err == nil {
		digest := s.tags.read(r).Digest
		if i := slices.IndexFunc(all, func(i Image) bool { return i.Digest == digest }); i >= 0 {
			return &all[i], nil
		}
	}
	switch found := byDigest(all, name); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, unknownImage(name, refsOf(all))
	default:
		return nil, fmt.Errorf("%d images begin with %q; give more of the digest", len(found), name)
	}
}

// unknownImage is the error that the store has no image of this name. It says which of those
// that are here was probably meant.
func unknownImage(name string, here []string) error {
	if meant := text.Meant(name, here, 3); meant != "" {
		return fmt.Errorf("there is no image %q here; did you mean %q?", name, meant)
	}
	return fmt.Errorf("there is no image %q here; `toolcell images list` shows those that are", name)
}

func refsOf(all []Image) (refs []string) {
	for _, i := range all {
		refs = append(refs, i.Refs...)
	}
	return refs
}

// Remove removes an image, named as for Find. If name is one of several references, only
// that reference is removed. It returns how many bytes were freed. The error is ErrInUse
// if a process uses the image.
func (s *Store) Remove(name string) (freed int64, err error) {
	image, err := s.Find(name)
	if err != nil {
		return 0, err
	}
	if r, err := images.Parse(name); err == nil && len(image.Refs) > 1 {
		err := os.Remove(s.tags.file(r))
		if err == nil {
			return 0, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("removing the name %q: %w", name, err)
		}
	}
	if err := s.removeImage(image); err != nil {
		return 0, fmt.Errorf("removing image %q: %w", name, err)
	}
	return s.removeUnusedLayers()
}

// removeImage removes an image and its names, but not its layers.
func (s *Store) removeImage(image *Image) error {
	unlock, err := s.cache.LockUnused(dirName(image.Digest))
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.tags.removeAll(image.Digest); err != nil {
		return err
	}
	return s.images.remove(dirName(image.Digest))
}

// Verify reads all of an image again. It compares each layer's contents with the digests
// recorded when the layer's own digest was verified, and the root with a new merge of the
// layers. It returns at most maxDamage differences, or an error if it cannot tell.
func (s *Store) Verify(ctx context.Context, image *Image) (damage []string, err error) {
	d := &damageList{}
	for _, l := range image.Layers {
		if err := s.layers.verify(ctx, l.DiffID, d); err != nil {
			return nil, fmt.Errorf("verifying layer %s: %w", l.DiffID, err)
		}
	}
	if len(d.found) == 0 {
		if err := verifyRoot(ctx, image, s.images, s.layers, s.budget(), d); err != nil {
			return nil, fmt.Errorf("verifying image %s: %w", image.Digest, err)
		}
	}
	return d.found, nil
}

// PruneOptions say what Prune may remove. An image whose name has moved to a newer one is
// removed in any case.
type PruneOptions struct {
	Unused time.Duration // images not used for this long; 0 for none
	Size   int64         // bytes that all images together may keep, most recently used first; 0 for no limit
}

// Prune removes the images that the options select, except those in use. It returns them
// and how many bytes were freed.
func (s *Store) Prune(o PruneOptions) (removed []Image, freed int64, err error) {
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
	prune := func(i Image) {
		old := o.Unused > 0 && time.Since(i.LastUsed) > o.Unused
		large := o.Size > 0 && total+size(i) > o.Size
		if !i.InUse && (len(i.Refs) == 0 || old || large) {
			switch rmErr := s.removeImage(&i); {
			case rmErr == nil:
				removed = append(removed, i)
				return
			case !errors.Is(rmErr, ErrInUse):
				err = errors.Join(err, fmt.Errorf("removing image %s: %w", i.Digest, rmErr))
			}
		}
		total += size(i)
		for _, l := range i.Layers {
			keep[l.DiffID] = l.Size
		}
	}
	for _, inUse := range []bool{true, false} { // those in use stay, however large they are
		for _, i := range all {
			if i.InUse == inUse {
				prune(i)
			}
		}
	}
	freed, layersErr := s.removeUnusedLayers()
	return removed, freed, errors.Join(err, s.images.removeUnusable(), layersErr)
}
