package imaging

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// gradient has many colors, and noise none that repeat.
func gradient(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * 255 / w), uint8(y * 255 / h), 128, 255})
		}
	}
	return m
}

func noise(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(random.Uint32())
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGIF(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// render renders the only picture of a run. The machine may be slow.
func render(data []byte, l Limits) (Rendered, error) {
	l.Time = cmp.Or(l.Time, time.Hour)
	return NewDecoders(l).NewRenderer().Render(context.Background(), bytes.NewReader(data))
}

//test:alone
func TestPicturesAreMadeToFit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 40, 40)) // all transparent
	for name, tt := range map[string]struct {
		data          []byte
		limits        Limits
		mime          string
		width, height int
		lessened      bool
	}{
		"small PNG":       {asPNG(t, gradient(64, 32)), Limits{}, "image/png", 64, 32, false},
		"wide":            {asPNG(t, gradient(3000, 30)), Limits{}, "image/png", 1024, 10, true},
		"a line":          {asPNG(t, gradient(5000, 1)), Limits{}, "image/png", 1024, 1, true},
		"high":            {asPNG(t, gradient(500, 2000)), Limits{}, "image/png", 256, 1024, true},
		"JPEG":            {asJPEG(t, gradient(300, 200)), Limits{}, "image/jpeg", 300, 200, false},
		"GIF":             {asGIF(t, gradient(30, 20)), Limits{}, "image/png", 30, 20, false},
		"noise":           {asPNG(t, noise(600, 600)), Limits{}, "image/jpeg", 600, 600, true},
		"transparent":     {asPNG(t, clear), Limits{}, "image/png", 40, 40, false},
		"16 bits":         {asPNG(t, image.NewNRGBA64(image.Rect(0, 0, 20, 20))), Limits{}, "image/png", 20, 20, false},
		"hardly any room": {asPNG(t, noise(1000, 1000)), Limits{Bytes: 4 << 10}, "image/jpeg", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewDecoders(tt.limits).Limits
			r, err := render(tt.data, tt.limits)
			if err != nil {
				t.Fatal(err)
			}
			m, kind, err := image.Decode(bytes.NewReader(r.Data))
			if err != nil || "image/"+kind != r.MIME || m.Bounds().Dx() != r.Width || m.Bounds().Dy() != r.Height {
				t.Fatalf("it is %s of %v, and said to be %s of %d×%d: %v", kind, m.Bounds(), r.MIME, r.Width, r.Height, err)
			}
			if len(r.Data) > l.Bytes || max(r.Width, r.Height) > l.Side {
				t.Errorf("%d bytes, %d×%d", len(r.Data), r.Width, r.Height)
			}
			if r.MIME != tt.mime || tt.width > 0 && (r.Width != tt.width || r.Height != tt.height) || r.Reduced != tt.lessened {
				t.Errorf("got %s of %d×%d, lessened %v", r.MIME, r.Width, r.Height, r.Reduced)
			}
		})
	}
}

// TestScalingKeepsTheColours: the middle of a gradient stays what it is.
//
//test:alone
func TestScalingKeepsTheColours(t *testing.T) {
	r, err := render(asPNG(t, gradient(3000, 1500)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := image.Decode(bytes.NewReader(r.Data))
	if err != nil {
		t.Fatal(err)
	}
	red, green, blue, _ := m.At(512, 256).RGBA()
	for i, got := range []uint32{red >> 8, green >> 8, blue >> 8} {
		if got < 124 || got > 132 {
			t.Errorf("channel %d is %d, want about 128", i, got)
		}
	}
}

// TestTransparencyIsWhiteInJPEG, and not black, on which no text could be read.
func TestTransparencyIsWhiteInJPEG(t *testing.T) {
	m := noise(700, 700)
	for i := 0; i < len(m.Pix)/2; i++ {
		m.Pix[i] = 0
	}
	draw.Draw(m, image.Rect(0, 650, 700, 700), image.Black, image.Point{}, draw.Src)
	r, err := render(asPNG(t, m), Limits{})
	if err != nil || r.MIME != "image/jpeg" {
		t.Fatalf("%s: %v", r.MIME, err)
	}
	got, _, _ := image.Decode(bytes.NewReader(r.Data))
	if red, _, _, _ := got.At(r.Width/2, 5).RGBA(); red>>8 < 250 {
		t.Errorf("what was transparent is %d", red>>8)
	}
	if red, _, _, _ := got.At(r.Width/2, r.Height-5).RGBA(); red>>8 > 5 {
		t.Errorf("what was black is %d", red>>8)
	}
}

// withSize changes the size that the header of a PNG claims.
func withSize(b []byte, w, h uint32) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[16:], w)
	binary.BigEndian.PutUint32(b[20:], h)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// jpegHeader is the beginning of a JPEG, up to its first scan. Each of its components
// has an identifier, factors and a table.
func jpegHeader(startOfFrame byte, side uint16, components string) string {
	size := string(binary.BigEndian.AppendUint16(nil, side))
	frame := "\x08" + size + size + string(rune(len(components)/3)) + components
	return "\xff\xd8\xff" + string([]byte{startOfFrame, 0, byte(2 + len(frame))}) + frame + "\xff\xda\x00\x02"
}

func TestHostilePicturesAreRefused(t *testing.T) {
	good := asPNG(t, gradient(8, 8))
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":          {nil, "neither PNG"},
		"text":             {[]byte("<svg/>"), "neither PNG"},
		"a bomb":           {withSize(good, 60_000, 60_000), "has 60000×60000 pixels"},
		"a long bomb":      {withSize(good, 1<<31-1, 1), "pixels"},
		"a thin one":       {withSize(good, 1, 1<<24), "on a side"},
		"16 bits":          {withSize(asPNG(t, image.NewNRGBA64(image.Rect(0, 0, 8, 8))), 4096, 4096), "takes 128 MiB, the most is 96 MiB"},
		"16 bits, gray":    {withSize(asPNG(t, image.NewGray16(image.Rect(0, 0, 8, 8))), 4096, 4096), "takes 128 MiB"},
		"with passes":      {withSize(hugePNG(8, 8, 8, 1), 4096, 4096), "takes 128 MiB"},
		"progressive JPEG": {[]byte(jpegHeader(0xc2, 4096, "\x01\x11\x00\x02\x11\x00\x03\x11\x00")), "takes 240 MiB"},
		"JPEG in RGB":      {[]byte(jpegHeader(0xc0, 4096, "R\x11\x00G\x11\x00B\x11\x00")), "takes 112 MiB"},
		"JPEG in CMYK":     {[]byte(jpegHeader(0xc0, 4096, "C\x11\x00M\x11\x00Y\x11\x00K\x11\x00")), "takes 128 MiB"},
		"half of it":       {good[:len(good)/2], "decoding the picture"},
		"only a signature": {good[:8], "size"},
		"larger than it":   {withSize(good, 4000, 4000), "decoding the picture"},
		"no width":         {withSize(good, 0, 8), ""},
		"GIF of no width":  {[]byte("GIF89a\x00\x00\x08\x00\x00\x00\x00"), "it has no pixels"},
		"GIF of no frame": {[]byte("GIF89a\x08\x00\x08\x00\x80\x00\x00" + "\x00\x00\x00\xff\xff\xff" +
			"\x2c\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x02\x01\x2c\x00\x3b"), "it has no pixels"},
		"GIF of no height": {[]byte("GIF89a\x08\x00\x00\x00\x00\x00\x00"), "it has no pixels"},
	} {
		if _, err := render(tt.data, Limits{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// FuzzRender: whatever a sandbox gives as a picture, the host stays within its
// bounds and up.
func FuzzRender(f *testing.F) {
	for _, seed := range [][]byte{asPNG(f, gradient(9, 7)), asJPEG(f, gradient(9, 7)), asGIF(f, gradient(9, 7)), []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{Side: 64, Bytes: 4 << 10}
		r, err := render(data, l)
		if err == nil && (len(r.Data) > l.Bytes || r.Width > l.Side || r.Height > l.Side || r.Width < 1 || r.Height < 1) {
			t.Errorf("%d bytes of %d×%d", len(r.Data), r.Width, r.Height)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for name, data := range map[string][]byte{
		"plot": asPNG(b, gradient(640, 480)), "photo": asJPEG(b, noise(1920, 1080)), "large": asPNG(b, gradient(4000, 4000)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := render(data, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
