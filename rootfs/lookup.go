package rootfs

import (
	"context"

	"github.com/toolcell/toolcell/internal/room"
)

// Lookup is what is known of an image before its layers are fetched.
type Lookup struct {
	Digest   string
	Platform string // the one that it is made for; "" if it does not say
	Size     int64  // bytes of its layers, compressed
	Here     bool   // it is in the store, unpacked
}

// Lookup reads the manifest and the configuration of an image from where it is, and
// no layer. Nothing is kept. The host has none.
func (s *Store) Lookup(ctx context.Context, ref string) (Lookup, error) {
	release, err := room.Documents(ctx)
	if err != nil {
		return Lookup{}, err
	}
	defer release()
	img, err := s.puller.Image(ctx, ref)
	if err != nil {
		return Lookup{}, err
	}
	found := Lookup{Digest: img.Digest, Platform: img.Platform}
	for _, l := range img.Layers {
		found.Size += l.Size
	}
	if rec := readRecord(s.images.path(dirName(found.Digest))); rec != nil {
		found.Here = rec.Digest == found.Digest
	}
	return found, nil
}
