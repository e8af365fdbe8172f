package rootfs

import (
	"errors"
	"testing"

	"github.com/toolcell/toolcell/images"
)

// TestLookupFetchesNoLayer, and keeps nothing.
func TestLookupFetchesNoLayer(t *testing.T) {
	reg := newRegistry(t)
	img := pythonImage(t)
	ref := reg.push(t, "py:3", img)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t)
	found, err := s.Lookup(ctx, ref)
	if err != nil || found.Digest != digest.String() || found.Size <= 0 || found.Here {
		t.Errorf("got %+v, %v", found, err)
	}
	if n := reg.blobs.Load(); n != 1 { // the configuration
		t.Errorf("fetched %d blobs", n)
	}
	if all, err := s.List(); err != nil || len(all) > 0 || s.Cached(ctx, ref) != nil {
		t.Errorf("kept %v, %v", all, err)
	}
	if _, err := s.Ensure(ctx, ref, nil); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Lookup(ctx, ref); err != nil || !found.Here {
		t.Errorf("after a pull: %+v, %v", found, err)
	}
	reg.stop()
	if _, err := s.Lookup(ctx, ref); !errors.Is(err, images.ErrUnavailable) {
		t.Errorf("without the registry: %v", err)
	}
}
