package rootfs

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultWhileUnpackingKeepsNothing and is the error of that image alone.
func TestFaultWhileUnpackingKeepsNothing(t *testing.T) {
	img := pythonImage(t)
	for _, point := range []string{
		"unpacking a layer", "unpacking an image", "merging the layers of an image",
		"reading a layer", "making a folder of the cache",
	} {
		s := openStore(t)
		ref := newRegistry(t).push(t, "py:3", img)
		t.Run(point, func(t *testing.T) {
			var seen atomic.Bool
			contain.Inject(t, func(at string) bool { return at == point && seen.CompareAndSwap(false, true) })
			var p *contain.PanicError
			if _, err := s.Ensure(ctx, ref, nil); seen.Load() && point != "reading a layer" && !errors.As(err, &p) {
				t.Errorf("error = %v", err) // at the end of reading all is read
			} else if !seen.Load() {
				t.Fatal("this point was not passed")
			} else if err != nil {
				nothingKept(t, s)
			}
		})
		if _, err := s.Ensure(ctx, ref, nil); err != nil {
			t.Errorf("%s: the next time: %v", point, err)
		}
	}
}
