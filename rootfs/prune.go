package rootfs

import (
	"errors"
	"fmt"
	"time"
)

// PruneOptions say what Prune may remove. An image that has lost its name to a
// newer one goes in any case.
type PruneOptions struct {
	Unused time.Duration // images not used for so long; 0 for none
	Size   int64         // bytes that all images together may keep, those used last first; 0 for any number
}

// prune calls remove for the images that the options say, but for those in use. It
// returns those that are removed.
func prune(all []Image, o PruneOptions, remove func(*Image) error) (removed []Image, err error) {
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
	for _, i := range inUseFirst(all) {
		old := o.Unused > 0 && time.Since(i.LastUsed) > o.Unused
		large := o.Size > 0 && total+size(i) > o.Size
		if !i.InUse && (len(i.Refs) == 0 || old || large) {
			switch rmErr := remove(&i); {
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
	return removed, err
}

// inUseFirst sorts images for counting: those in use stay, however large they are.
func inUseFirst(all []Image) []Image {
	inUse, others := []Image{}, []Image{}
	for _, i := range all {
		if i.InUse {
			inUse = append(inUse, i)
		} else {
			others = append(others, i)
		}
	}
	return append(inUse, others...)
}
