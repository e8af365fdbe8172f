package bridge

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// gradient has many colours, and noise none that repeat.
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

func TestPicturesAreMadeToFit(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 40, 40)) // all transparent
	for name, tt := range map[string]struct {
		data          []byte
		limits        PictureLimits
		mime          string
		width, height int
		lessened      bool
	}{
		"small PNG":       {asPNG(t, gradient(64, 32)), PictureLimits{}, "image/png", 64, 32, false},
		"wide":            {asPNG(t, gradient(3000, 30)), PictureLimits{}, "image/png", 1024, 10, true},
		"a line":          {asPNG(t, gradient(5000, 1)), PictureLimits{}, "image/png", 1024, 1, true},
		"high":            {asPNG(t, gradient(500, 2000)), PictureLimits{}, "image/png", 256, 1024, true},
		"JPEG":            {asJPEG(t, gradient(300, 200)), PictureLimits{}, "image/jpeg", 300, 200, false},
		"GIF":             {asGIF(t, gradient(30, 20)), PictureLimits{}, "image/png", 30, 20, false},
		"noise":           {asPNG(t, noise(600, 600)), PictureLimits{}, "image/jpeg", 600, 600, true},
		"transparent":     {asPNG(t, clear), PictureLimits{}, "image/png", 40, 40, false},
		"16 bits":         {asPNG(t, image.NewNRGBA64(image.Rect(0, 0, 20, 20))), PictureLimits{}, "image/png", 20, 20, false},
		"hardly any room": {asPNG(t, noise(1000, 1000)), PictureLimits{Bytes: 4 << 10}, "image/jpeg", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := tt.limits.withDefaults()
			r, err := render(tt.data, l)
			if err != nil {
				t.Fatal(err)
			}
			m, kind, err := image.Decode(bytes.NewReader(r.data))
			if err != nil || "image/"+kind != r.mime || m.Bounds().Dx() != r.width || m.Bounds().Dy() != r.height {
				t.Fatalf("it is %s of %v, and said to be %s of %d×%d: %v", kind, m.Bounds(), r.mime, r.width, r.height, err)
			}
			if len(r.data) > l.Bytes || max(r.width, r.height) > l.Side {
				t.Errorf("%d bytes, %d×%d", len(r.data), r.width, r.height)
			}
			if r.mime != tt.mime || tt.width > 0 && (r.width != tt.width || r.height != tt.height) || r.lessened != tt.lessened {
				t.Errorf("got %s of %d×%d, lessened %v", r.mime, r.width, r.height, r.lessened)
			}
		})
	}
}

// TestScalingKeepsTheColours: the middle of a gradient stays what it is.
func TestScalingKeepsTheColours(t *testing.T) {
	r, err := render(asPNG(t, gradient(3000, 1500)), PictureLimits{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := image.Decode(bytes.NewReader(r.data))
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

// TestTransparencyIsWhiteInJPEG, and not black, on which nobody could read.
func TestTransparencyIsWhiteInJPEG(t *testing.T) {
	m := noise(700, 700)
	for i := 0; i < len(m.Pix)/2; i++ {
		m.Pix[i] = 0
	}
	r, err := render(asPNG(t, m), PictureLimits{}.withDefaults())
	if err != nil || r.mime != "image/jpeg" {
		t.Fatalf("%s: %v", r.mime, err)
	}
	got, _, _ := image.Decode(bytes.NewReader(r.data))
	if red, _, _, _ := got.At(r.width/2, 5).RGBA(); red>>8 < 250 {
		t.Errorf("what was transparent is %d", red>>8)
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
		"half of it":       {good[:len(good)/2], "decoding"},
		"only a signature": {good[:8], "size"},
		"larger than it":   {withSize(good, 4000, 4000), "decoding"},
		"no width":         {withSize(good, 0, 8), ""},
	} {
		if _, err := render(tt.data, PictureLimits{}.withDefaults()); err == nil || !strings.Contains(err.Error(), tt.want) {
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
		l := PictureLimits{Side: 64, Bytes: 4 << 10}.withDefaults()
		r, err := render(data, l)
		if err == nil && (len(r.data) > l.Bytes || r.width > l.Side || r.height > l.Side || r.width < 1 || r.height < 1) {
			t.Errorf("%d bytes of %d×%d", len(r.data), r.width, r.height)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for name, data := range map[string][]byte{
		"plot": asPNG(b, gradient(640, 480)), "photo": asJPEG(b, noise(1920, 1080)), "large": asPNG(b, gradient(4000, 4000)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := render(data, PictureLimits{}.withDefaults()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
