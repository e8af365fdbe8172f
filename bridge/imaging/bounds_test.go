package imaging

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
)

// endless is a picture that takes every machine some minutes.
func endless() []byte { return imagingtest.SlowJPEG(4096, 100_000) }

// TestSlowPicturesAreStopped when the time for the pictures of a run is used up.
func TestSlowPicturesAreStopped(t *testing.T) {
	r := NewDecoders(Limits{Time: 50 * time.Millisecond}).NewRenderer()
	for _, data := range [][]byte{endless(), asPNG(t, gradient(8, 8)), asGIF(t, gradient(8, 8))} {
		if _, err := r.Render(t.Context(), bytes.NewReader(data)); !errors.Is(err, ErrTime) {
			t.Errorf("got %v", err)
		}
	}
}

// TestRenderEndsWithTheRun, at its deadline or when it is cancelled, and so does
// the decoder.
func TestRenderEndsWithTheRun(t *testing.T) {
	d := NewDecoders(Limits{Time: time.Hour})
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.NewRenderer().Render(short, bytes.NewReader(endless())); !errors.Is(err, ErrTime) {
		t.Errorf("at the deadline: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := d.NewRenderer().Render(cancelled, bytes.NewReader(endless())); !errors.Is(err, context.Canceled) {
		t.Errorf("when cancelled: %v", err)
	}
	d.Wait()
}

// TestScalingAndEncodingAreStopped too: at once, at each place where they ask whether to.
func TestScalingAndEncodingAreStopped(t *testing.T) {
	m, l := noise(200, 300), NewDecoders(Limits{Side: 256, Bytes: 8 << 10}).Limits
	for asked := 0; ; asked++ {
		left := asked
		_, err := fit(m, false, l, func() error {
			if left--; left < 0 {
				return ErrTime
			}
			return nil
		})
		if left >= 0 { // it was not asked to stop
			if err != nil || asked < 10 {
				t.Errorf("after %d checks: %v", asked, err)
			}
			return
		}
		if !errors.Is(err, ErrTime) || left < -1 {
			t.Fatalf("stopped after %d checks: %v, and asked %d times more", asked, err, -1-left)
		}
	}
}

// TestPixelsOfARunAreCountedTogether, whatever becomes of the pictures.
func TestPixelsOfARunAreCountedTogether(t *testing.T) {
	d := NewDecoders(Limits{Pixels: 1000, Time: time.Hour})
	r := d.NewRenderer()
	for i, tt := range []struct {
		side int
		want error
	}{{20, nil}, {20, nil}, {20, ErrPixels}, {10, nil}, {11, ErrPixels}} {
		if _, err := r.Render(t.Context(), bytes.NewReader(asPNG(t, gradient(tt.side, tt.side)))); !errors.Is(err, tt.want) {
			t.Errorf("picture %d: %v, want %v", i+1, err, tt.want)
		}
	}
	if _, err := d.NewRenderer().Render(t.Context(), bytes.NewReader(asPNG(t, gradient(30, 30)))); err != nil {
		t.Errorf("in another run: %v", err)
	}
}

// TestPicturesWaitForMemory that others have, but small ones do not.
func TestPicturesWaitForMemory(t *testing.T) {
	d := NewDecoders(Limits{Time: time.Hour})
	large, small := asPNG(t, gradient(2100, 2100)), asPNG(t, gradient(8, 8))
	if !d.memory.TryAcquire(allMemory) {
		t.Fatal("it was not free")
	}
	if _, err := d.NewRenderer().Render(t.Context(), bytes.NewReader(small)); err != nil {
		t.Errorf("a small one: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.NewRenderer().Render(short, bytes.NewReader(large)); !errors.Is(err, ErrTime) {
		t.Errorf("at the end of its run: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := d.NewRenderer().Render(t.Context(), bytes.NewReader(large))
		done <- err
	}()
	d.memory.Release(allMemory)
	if err := <-done; err != nil {
		t.Errorf("when it is its turn: %v", err)
	}
	if !d.memory.TryAcquire(allMemory) {
		t.Error("what it took is not given back")
	}
}

// TestMemoryOfJPEGIsNotLessThanItTakes: blocks are decoded whole, and a segment anywhere can have
// the samples copied as RGB.
func TestMemoryOfJPEGIsNotLessThanItTakes(t *testing.T) {
	plain := asJPEG(t, gradient(64, 64))
	at := func(where int, segment string) []byte {
		return slices.Concat(plain[:where], []byte(segment), plain[where:])
	}
	const adobe, noJFIF = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00", "\xff\xe0\x00\x07nojf\x00"
	const samples = 64 * 64 * 3 / 2
	for name, tt := range map[string]struct {
		data          []byte
		width, height int
		want          int
	}{
		"plain":                 {plain, 64, 64, samples},
		"RGB at the end":        {at(len(plain)-2, adobe), 64, 64, samples + 4*64*64},
		"after a fill byte":     {at(len(plain)-2, "\xff"+adobe), 64, 64, samples + 4*64*64},
		"no JFIF at the end":    {at(len(plain)-2, noJFIF), 64, 64, samples + 4*64*64},
		"behind many other":     {at(len(plain)-2, strings.Repeat("\xff\xfe\xff\x00"+strings.Repeat("c", 0xfefe), 3)+adobe), 64, 64, samples + 4*64*64},
		"a column":              {plain, 1, 64, 32 * 64 * 3 / 2},
		"a row, and one of two": {plain, 65, 33, 96 * 64 * 3 / 2},
	} {
		c := image.Config{ColorModel: color.YCbCrModel, Width: tt.width, Height: tt.height}
		if got := memoryOfJPEG(bytes.NewReader(tt.data), c); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}

// TestFrameOfJPEG is what the decoder finds, or more.
func TestFrameOfJPEG(t *testing.T) {
	slow := imagingtest.SlowJPEG(64, 1)
	var gray bytes.Buffer
	if err := jpeg.Encode(&gray, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		data []byte
		want jpegFrame
	}{
		"color":            {asJPEG(t, gradient(8, 8)), jpegFrame{false, 6, 4}},
		"gray":             {gray.Bytes(), jpegFrame{false, 1, 1}},
		"progressive":      {slow, jpegFrame{true, 1, 1}},
		"after fill bytes": {append([]byte{0xff, 0xd8, 0xff, 0xff}, slow[2:]...), jpegFrame{true, 1, 1}},
		"after a comment":  {append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, 6, 0xff, 0xc0, 0, 0}, slow[2:]...), jpegFrame{true, 1, 1}},
		"after odd bytes":  {append([]byte{0xff, 0xd8, 0}, gray.Bytes()[2:]...), largestFrame},
		"gray, factors 2":  {[]byte(jpegHeader(0xc0, 8, "\x01\x22\x00")), jpegFrame{false, 1, 1}},
		"gray, factors 0":  {[]byte(jpegHeader(0xc0, 8, "\x01\x00\x00")), jpegFrame{false, 1, 1}},
		"no components":    {[]byte("\xff\xd8\xff\xc0\x00\x08\x08\x00\x08\x00\x08\x00"), largestFrame},
		"after a zero":     {append([]byte("\xff\xd8\xff\x00\x00\x02"), gray.Bytes()[2:]...), largestFrame},
		"after a restart":  {append([]byte("\xff\xd8\xff\xd0\x00\x02"), gray.Bytes()[2:]...), largestFrame},
		"cut off":          {slow[:13], largestFrame},
		"cut off sooner":   {slow[:8], largestFrame},
		"empty":            {nil, largestFrame},
	} {
		if got := frameOfJPEG(bufio.NewReader(bytes.NewReader(tt.data))); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
