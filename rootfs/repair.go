package rootfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
)

// Repair builds an image again from its layers, after fetching damaged ones. Nothing is
// removed before its replacement exists, so after an error the image is unchanged. It
// returns the reference from which layers were fetched, or "". The error is ErrInUse if a
// process uses the image.
func (s *Store) Repair(ctx context.Context, image *Image) (source string, err error) {
	unlock, err := s.cache.LockUnused(dirName(image.Digest))
	if err != nil {
		return "", err
	}
	defer unlock()
	pulling, err := s.cache.Wait(ctx, pullsLock, state.Shared)
	if err != nil {
		return "", err
	}
	defer pulling()
	damaged := map[string]bool{}
	for _, l := range image.Layers {
		d := &damageList{}
		if err := s.layers.verify(ctx, l.DiffID, d); err != nil {
			return "", err
		}
		if len(d.found) > 0 {
			damaged[l.DiffID] = true
		}
	}
	if len(damaged) > 0 {
		if source, err = s.fetchAgain(ctx, image, damaged); err != nil {
			return "", err
		}
	}
	ref := ""
	if len(image.Refs) > 0 {
		ref = image.Refs[0]
	}
	return source, s.images.build(dirName(image.Digest), image.Digest, ref, func(dir string) (*record, error) {
		b := s.budget()
		root, err := mergeStored(ctx, dir, image.Layers, s.layers, b)
		if err != nil {
			return nil, err
		}
		return &record{Platform: image.Platform, Layers: image.Layers, Env: image.Env, Python: image.Python}, root.Close()
	})
}

// fetchAgain replaces layers of an image from the first of its references that still has
// them.
func (s *Store) fetchAgain(ctx context.Context, image *Image, damaged map[string]bool) (source string, err error) {
	if len(image.Refs) == 0 {
		return "", errors.New("its layers are damaged, and it has no name under which they could be fetched; remove it with: toolcell images rm " + image.Digest)
	}
	var failures []error
	for _, ref := range image.Refs {
		img, err := s.findAgain(ctx, ref, image.Digest)
		if err == nil {
			err = s.replaceLayers(ctx, img, damaged)
		}
		if err == nil || ctx.Err() != nil {
			return ref, err
		}
		failures = append(failures, err)
	}
	return "", fmt.Errorf("fetching its damaged layers again: %w", errors.Join(failures...))
}

// findAgain returns the image with a digest, even if its tag in a registry has moved to
// another image.
func (s *Store) findAgain(ctx context.Context, ref, digest string) (*images.Image, error) {
	r, err := images.Parse(ref)
	if err != nil {
		return nil, err
	}
	if !r.Local() {
		ref = r.WithDigest(digest)
	}
	img, err := s.puller.Image(ctx, ref)
	if err != nil {
		return nil, err
	}
	if img.Digest != digest {
		return nil, fmt.Errorf("%s has another image now, with the digest %s", ref, img.Digest)
	}
	return img, nil
}

func (s *Store) replaceLayers(ctx context.Context, img *images.Image, damaged map[string]bool) error {
	b := s.budget()
	for _, l := range img.Layers {
		diffID := l.DiffID.String()
		if !damaged[diffID] {
			continue
		}
		if _, err := s.layers.ensure(ctx, l, b, true, nil); err != nil {
			return fmt.Errorf("layer %s: %w", diffID, err)
		}
		delete(damaged, diffID) // an image may have a layer twice
	}
	return nil
}
