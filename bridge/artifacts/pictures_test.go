package artifacts

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
)

// storeOf makes a store for pictures within the limits.
func storeOf(t *testing.T, l imaging.Limits) *Store {
	t.Helper()
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs"), Pictures: l})
	t.Cleanup(s.Close)
	return s
}

// displays gives a run pictures.
func (r *Collector) displays(t *testing.T, pictures ...[]byte) {
	t.Helper()
	for _, data := range pictures {
		if err := r.Display("picture", data, false); err != nil {
			t.Fatal(err)
		}
	}
}

func squarePNG(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// endless is a picture that takes every machine some minutes.
func endless() []byte { return imagingtest.SlowJPEG(4096, 100_000) }

// TestPicturesLeftOut are said, in one note for all, and kept as files.
func TestPicturesLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		limits   imaging.Limits
		pictures [][]byte
		files    []string // that are listed
		note     string
	}{
		"too slow":        {imaging.Limits{Time: 50 * time.Millisecond}, [][]byte{endless()}, []string{"picture.jpg"}, "picture left out: decoding took too long"},
		"two":             {imaging.Limits{Time: 50 * time.Millisecond}, [][]byte{endless(), endless()}, []string{"picture.jpg", "picture-2.jpg"}, "2 pictures left out: decoding took too long"},
		"too many":        {imaging.Limits{Time: time.Hour, Count: 1}, [][]byte{squarePNG(t, 8), squarePNG(t, 8)}, []string{"picture-2.png"}, "1 picture beyond the 1 that a result shows: kept as files"},
		"too large":       {imaging.Limits{Time: time.Hour, Pixels: 2 << 20}, [][]byte{squarePNG(t, 500), squarePNG(t, 1400)}, []string{"picture-2.png"}, "picture left out: the pictures of a run can have 2 million pixels in all"},
		"large by itself": {imaging.Limits{Time: time.Hour, Pixels: 2 << 20}, [][]byte{squarePNG(t, 1500)}, []string{"picture.png"}, `picture "picture.png" cannot be shown: it has 1500×1500 pixels, the most is 2 million`},
	} {
		t.Run(name, func(t *testing.T) {
			r := storeOf(t, tt.limits).NewCollector(t.Context(), newRunID())
			defer r.Discard()
			r.displays(t, tt.pictures...)
			left := r.Finish()
			var files []string
			for _, f := range left.Files {
				files = append(files, f.Name)
			}
			if !slices.Equal(left.Notes, []string{tt.note}) || !slices.Equal(files, tt.files) {
				t.Errorf("notes %q, files %v", left.Notes, files)
			}
			if len(left.Pictures) != len(tt.pictures)-len(tt.files) {
				t.Errorf("%d pictures are shown", len(left.Pictures))
			}
		})
	}
}

// TestSlowPicturesHoldNoOtherRun: pictures of a neighbor come through, small ones
// and large ones, while another run's is being decoded. That run can be cancelled.
func TestSlowPicturesHoldNoOtherRun(t *testing.T) {
	s := storeOf(t, imaging.Limits{Time: time.Hour, Side: 64})
	ctx, cancel := context.WithCancel(t.Context())
	hog := s.NewCollector(ctx, newRunID())
	defer hog.Discard()
	defer cancel()
	hog.displays(t, endless(), endless())

	neighbor := s.NewCollector(t.Context(), newRunID())
	defer neighbor.Discard()
	neighbor.displays(t, squarePNG(t, 8), imagingtest.SlowJPEG(1856, 1))
	if left := neighbor.Finish(); len(left.Pictures) != 2 || len(left.Notes) > 0 {
		t.Errorf("the neighbor has %d pictures, notes %q", len(left.Pictures), left.Notes)
	}

	cancel()
	if left := hog.Finish(); len(left.Pictures) != 0 || len(left.Notes) > 0 || len(left.Files) != 2 {
		t.Errorf("the hog has %d pictures, %d files, notes %q", len(left.Pictures), len(left.Files), left.Notes)
	}
}

// TestPicturesEndWithTheirRun: what is not decoded by then is left out.
func TestPicturesEndWithTheirRun(t *testing.T) {
	s := storeOf(t, imaging.Limits{Time: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	r := s.NewCollector(ctx, newRunID())
	defer r.Discard()
	r.displays(t, endless(), squarePNG(t, 8))
	if left := r.Finish(); len(left.Pictures) != 0 || !strings.Contains(strings.Join(left.Notes, "\n"), "2 pictures left out: decoding took too long") {
		t.Errorf("%d pictures, notes %q", len(left.Pictures), left.Notes)
	}
}

// padded appends bytes to a picture, which its decoder does not read.
func padded(picture []byte, size int) []byte {
	return append(slices.Clip(picture), make([]byte, size-len(picture))...)
}

// TestPicturesWaitInTheirFiles until they are decoded, not in memory.
func TestPicturesWaitInTheirFiles(t *testing.T) {
	s := storeOf(t, imaging.Limits{Time: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	r := s.NewCollector(ctx, newRunID())
	defer r.Discard()
	defer cancel()
	slow := imagingtest.SlowJPEG(1024, 100_000) // its decoder takes 5 MiB
	data := padded(slow, 8<<20)
	before := heap()
	r.displays(t, data, data, data, data, data, data)
	if after := heap(); after > before+(16<<20) {
		t.Errorf("six pictures of 8 MiB take %d MiB", (after-before)>>20)
	}
	runtime.KeepAlive(data)
}

// heap returns how much memory is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestPicturesWithoutFilesAreBounded: they wait in memory.
func TestPicturesWithoutFilesAreBounded(t *testing.T) {
	r := New(Options{}).NewCollector(t.Context(), newRunID())
	defer r.Discard()
	large := padded(squarePNG(t, 8), maxUnkept/2)
	r.displays(t, large, large, large)
	left := r.Finish()
	want := `picture "picture.png" cannot be shown: pictures that are not kept as files can have 8 MiB in all`
	if len(left.Pictures) != 2 || !slices.Equal(left.Notes, []string{want}) {
		t.Errorf("%d pictures, notes %q", len(left.Pictures), left.Notes)
	}
}
