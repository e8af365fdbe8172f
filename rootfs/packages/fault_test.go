package packages

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultOfAPackageIsItsError, and the comparison with the image's own modules does
// not count as made: they would hide the packages.
func TestFaultOfAPackageIsItsError(t *testing.T) {
	for _, point := range []string{"unpacking a package", "comparing packages with those of the image", "making a folder of the cache"} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		t.Run(point, func(t *testing.T) {
			var seen atomic.Bool
			contain.Inject(t, func(at string) bool { return at == point && seen.CompareAndSwap(false, true) })
			var p *contain.PanicError
			if _, err := s.Ensure(t.Context(), x.request("a>=1", "b"), nil); !errors.As(err, &p) {
				t.Errorf("error = %v, point passed: %t", err, seen.Load())
			}
		})
		set, err := s.Ensure(t.Context(), x.request("a>=1", "b"), nil)
		if err != nil || len(set.Packages) != 2 {
			t.Errorf("%s: the next time: %+v, %v", point, set, err)
		}
	}
}
