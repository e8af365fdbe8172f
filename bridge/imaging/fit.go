package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"

	"golang.org/x/image/draw"
)

// fit scales and encodes m until it is within the limits: as PNG, if that is
// small enough and it was no photograph, else as JPEG, and smaller and smaller.
// Between its steps it asks whether it has to stop.
func fit(m image.Image, photo bool, l Limits, check func() error) (Rendered, error) {
	longer := max(m.Bounds().Dx(), m.Bounds().Dy())
	for side := min(longer, l.Side); side >= 1; side = side * 3 / 4 {
		at, err := scaled(m, side, check)
		if err != nil {
			return Rendered{}, err
		}
		r := Rendered{Width: at.Bounds().Dx(), Height: at.Bounds().Dy(), Reduced: side < longer}
		if !photo {
			if r.Data, err = encodePNG(at, check); err != nil {
				return r, err
			}
			if r.MIME = "image/png"; len(r.Data) <= l.Bytes {
				return r, nil
			}
		}
		r.MIME, r.Reduced = "image/jpeg", r.Reduced || !photo
		for _, quality := range []int{90, 75, 60} {
			if err := check(); err != nil {
				return r, err
			}
			var b bytes.Buffer
			if err := jpeg.Encode(&b, onWhite(at), &jpeg.Options{Quality: quality}); err != nil {
				return r, fmt.Errorf("encoding the picture: %w", err)
			}
			if r.Data = b.Bytes(); len(r.Data) <= l.Bytes {
				return r, nil
			}
		}
	}
	return Rendered{}, fmt.Errorf("no picture is as small as %d bytes", l.Bytes)
}

// stripPixels is how much is scaled at once, with 32 bytes for each pixel.
const stripPixels = 1 << 16

// scaled gives m with a longer side of so many pixels, m itself if it has. Its
// rows and then its columns are scaled strip by strip, which looks like scaling
// both at once and takes hundreds of megabytes less.
func scaled(m image.Image, side int, check func() error) (image.Image, error) {
	b := m.Bounds()
	longer := max(b.Dx(), b.Dy())
	if side >= longer {
		return m, nil
	}
	shrink := func(n int) int { return max(1, int(math.Round(float64(n)*float64(side)/float64(longer)))) }
	w, h := shrink(b.Dx()), shrink(b.Dy())
	narrow := image.NewRGBA(image.Rect(0, 0, w, b.Dy()))
	rows := min(max(1, stripPixels/w), b.Dy())
	scaler := draw.CatmullRom.NewScaler(w, rows, b.Dx(), rows)
	for y := 0; y < b.Dy(); y += rows {
		if err := check(); err != nil {
			return nil, err
		}
		end := min(y+rows, b.Dy())
		scaler.Scale(narrow, image.Rect(0, y, w, end), m, image.Rect(b.Min.X, b.Min.Y+y, b.Max.X, b.Min.Y+end), draw.Src, nil)
	}
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	columns := min(max(1, stripPixels/b.Dy()), w)
	scaler = draw.CatmullRom.NewScaler(columns, h, columns, b.Dy())
	for x := 0; x < w; x += columns {
		if err := check(); err != nil {
			return nil, err
		}
		end := min(x+columns, w)
		scaler.Scale(to, image.Rect(x, 0, end, h), narrow, image.Rect(x, 0, end, b.Dy()), draw.Src, nil)
	}
	return to, nil
}

// A writer fails when check does, which ends an encoder.
type writer struct {
	bytes []byte
	check func() error
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.check(); err != nil {
		return 0, err
	}
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

// encodePNG uses a palette if m has few colors, which looks the same and halves
// the size.
func encodePNG(m image.Image, check func() error) ([]byte, error) {
	p, err := paletted(m, check)
	if err != nil {
		return nil, err
	}
	if p != nil {
		m = p
	}
	w := &writer{check: check}
	if err := png.Encode(w, m); err != nil {
		return nil, fmt.Errorf("encoding the picture: %w", err)
	}
	return w.bytes, nil
}

// paletted converts m to a palette of all its colors, or returns nil if it has
// too many.
func paletted(m image.Image, check func() error) (*image.Paletted, error) {
	b := m.Bounds()
	index := map[color.NRGBA]uint8{}
	to := image.NewPaletted(b, nil)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		if err := check(); err != nil {
			return nil, err
		}
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			i, known := index[c]
			if !known {
				if len(to.Palette) == 256 {
					return nil, nil
				}
				i = uint8(len(to.Palette))
				index[c] = i
				to.Palette = append(to.Palette, c)
			}
			to.Pix[to.PixOffset(x, y)] = i
		}
	}
	return to, nil
}

// onWhite is m without transparency, which JPEG does not have.
func onWhite(m image.Image) image.Image {
	if o, ok := m.(interface{ Opaque() bool }); ok && o.Opaque() {
		return m
	}
	to := image.NewRGBA(m.Bounds())
	draw.Draw(to, to.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(to, to.Bounds(), m, m.Bounds().Min, draw.Over)
	return to
}
