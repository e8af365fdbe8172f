// Package imaging decodes pictures from a sandbox within bounds and encodes them
// again, so that no byte written by the code reaches a client's decoder.
package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"net/http"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// maxPixels bounds a picture that is decoded here, as its header has it: some
// kilobytes can stand for gigabytes. With four or eight bytes a pixel it takes
// up to 128 MiB for a moment, and one is decoded at a time.
const maxPixels = 16 << 20

// None is the count of PictureLimits with which all are kept as files.
const None = -1

// Limits bound the pictures that a result carries.
type Limits struct {
	Count int // a run; 8 if 0
	Side  int // of the longer side in pixels; 1024 if 0
	Bytes int // of each; 400 KiB if 0
}

// WithDefaults returns the limits with those that are zero set to their defaults.
func (l Limits) WithDefaults() Limits {
	if l.Count == 0 {
		l.Count = 8
	}
	if l.Side <= 0 {
		l.Side = 1024
	}
	if l.Bytes <= 0 {
		l.Bytes = 400 << 10
	}
	return l
}

// A Rendered is a picture encoded here, to be sent to the client.
type Rendered struct {
	Data          []byte
	MIME          string
	Width, Height int
	Reduced       bool // it has less in it than the one it was made from
}

// A pictureFormat is one that can be decoded.
type pictureFormat struct {
	Ext    string
	config func(*bytes.Reader) (image.Config, error)
	decode func(*bytes.Reader) (image.Image, error)
}

// Formats holds the formats that can be decoded, by media type. The first bytes
// of a picture decide which it is; the sandbox's own claim is ignored.
var Formats = map[string]pictureFormat{
	"image/png": {
		".png",
		func(r *bytes.Reader) (image.Config, error) { return png.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return png.Decode(r) },
	},
	"image/jpeg": {
		".jpg",
		func(r *bytes.Reader) (image.Config, error) { return jpeg.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return jpeg.Decode(r) },
	},
	"image/gif": {
		".gif",
		func(r *bytes.Reader) (image.Config, error) { return gif.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return gif.Decode(r) }, // the first frame
	},
	"image/webp": {
		".webp",
		func(r *bytes.Reader) (image.Config, error) { return webp.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Image, error) { return webp.Decode(r) },
	},
}

// Render turns a picture from a sandbox into one within the limits. It always
// encodes it anew, so that no byte from the sandbox reaches a client, whose
// decoder may be less careful.
func Render(data []byte, l Limits) (r Rendered, err error) {
	defer func() {
		if p := recover(); p != nil { // a bug in a decoder
			err = fmt.Errorf("decoding the picture: %v", p)
		}
	}()
	mime := http.DetectContentType(data)
	format, ok := Formats[mime]
	if !ok {
		return r, fmt.Errorf("it is neither PNG, JPEG, GIF nor WebP")
	}
	config, err := format.config(bytes.NewReader(data))
	if err != nil {
		return r, fmt.Errorf("reading the picture's size: %w", err)
	}
	if config.Width <= 0 || config.Height <= 0 {
		return r, errors.New("it has no pixels")
	}
	if config.Width > maxPixels/config.Height {
		return r, fmt.Errorf("it has %d×%d pixels, the most is %d million", config.Width, config.Height, maxPixels>>20)
	}
	m, err := format.decode(bytes.NewReader(data))
	if err != nil {
		return r, fmt.Errorf("decoding the picture: %w", err)
	}
	return fit(m, mime == "image/jpeg", l)
}

// fit scales and encodes m until it is within the limits: as PNG, if that is
// small enough and it was no photograph, else as JPEG, and smaller and smaller.
func fit(m image.Image, photo bool, l Limits) (Rendered, error) {
	longer := max(m.Bounds().Dx(), m.Bounds().Dy())
	for side := min(longer, l.Side); side >= 1; side = side * 3 / 4 {
		at := scaled(m, side)
		r := Rendered{Width: at.Bounds().Dx(), Height: at.Bounds().Dy(), Reduced: side < longer}
		if !photo {
			var err error
			if r.Data, err = encodePNG(at); err != nil {
				return r, err
			}
			if r.MIME = "image/png"; len(r.Data) <= l.Bytes {
				return r, nil
			}
		}
		r.MIME, r.Reduced = "image/jpeg", r.Reduced || !photo
		for _, quality := range []int{90, 75, 60} {
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

// scaled gives m with a longer side of so many pixels, m itself if it has.
func scaled(m image.Image, side int) image.Image {
	b := m.Bounds()
	longer := max(b.Dx(), b.Dy())
	if side >= longer {
		return m
	}
	shrink := func(n int) int { return max(1, int(math.Round(float64(n)*float64(side)/float64(longer)))) }
	to := image.NewRGBA(image.Rect(0, 0, shrink(b.Dx()), shrink(b.Dy())))
	draw.CatmullRom.Scale(to, to.Bounds(), m, b, draw.Src, nil)
	return to
}

// encodePNG uses a palette if m has few colors, which looks the same and halves
// the size.
func encodePNG(m image.Image) ([]byte, error) {
	if p := paletted(m); p != nil {
		m = p
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return nil, fmt.Errorf("encoding the picture: %w", err)
	}
	return b.Bytes(), nil
}

// paletted converts m to a palette of all its colors, or returns nil if it has
// too many.
func paletted(m image.Image) *image.Paletted {
	b := m.Bounds()
	index := map[color.NRGBA]uint8{}
	to := image.NewPaletted(b, nil)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			i, known := index[c]
			if !known {
				if len(to.Palette) == 256 {
					return nil
				}
				i = uint8(len(to.Palette))
				index[c] = i
				to.Palette = append(to.Palette, c)
			}
			to.Pix[to.PixOffset(x, y)] = i
		}
	}
	return to
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
