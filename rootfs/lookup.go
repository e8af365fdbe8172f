package rootfs

import (
	"context"

	"github.com/toolcell/toolcell/internal/room"
)

// A Lookup has what is known of an image before its layers are fetched.
type Lookup struct {
	Digest   string
	Platform string // that it was built for; "" if it does not say
	Size     int64  // bytes of its layers, compressed
	Here     bool   // unpacked in the store
}

// Lookup reads the manifest and configuration of an image from its source, but no layer.
// It stores nothing, and fails for the image "host".
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
