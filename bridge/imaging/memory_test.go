//go:build !race

package imaging

import (
	"bytes"
	"image"
	"image/color"
	"runtime"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
)

// TestMemoryOfOnePicture, with all that is allocated for it, garbage too. The
// race detector empties pools, which makes more of it.
func TestMemoryOfOnePicture(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	rect := func(side int) image.Rectangle { return image.Rect(0, 0, side, side) }
	for name, data := range map[string][]byte{
		"PNG":              asPNG(t, image.NewNRGBA(rect(4096))),
		"PNG of 16 bits":   asPNG(t, image.NewNRGBA64(rect(3500))),
		"JPEG":             asJPEG(t, image.NewYCbCr(rect(4096), image.YCbCrSubsampleRatio420)),
		"progressive JPEG": imagingtest.SlowJPEG(4096, 1),
		"GIF":              asGIF(t, image.NewPaletted(rect(4096), color.Palette{color.Black, color.White})),
	} {
		r := NewDecoders(Limits{Time: time.Hour}).NewRenderer()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := r.Render(t.Context(), bytes.NewReader(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		all := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB, %s of the processor", name, all, time.Hour-r.time)
		if all > 136 {
			t.Errorf("%s takes %d MiB", name, all)
		}
	}
}
