package imaging

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
)

// TestFewColorsAreKept to the bit, with a palette: also the nearly transparent ones,
// which come out different when a picture is scaled, and those of a palette.
func TestFewColorsAreKept(t *testing.T) {
	colors := color.Palette{
		color.NRGBA{200, 100, 50, 3},
		color.NRGBA{1, 2, 3, 255},
		color.NRGBA{90, 80, 70, 128},
		color.NRGBA{},
		color.NRGBA{255, 255, 255, 255},
	}
	indexed := image.NewPaletted(image.Rect(0, 0, 40, 30), colors)
	direct := image.NewNRGBA(indexed.Bounds())
	for y := range 30 {
		for x := range 40 {
			i := (x*x + y) % len(colors)
			indexed.SetColorIndex(x, y, uint8(i))
			direct.Set(x, y, colors[i])
		}
	}
	for name, m := range map[string]image.Image{"direct": direct, "a palette": indexed} {
		r, err := render(asPNG(t, m), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := png.Decode(bytes.NewReader(r.Data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p, ok := got.ColorModel().(color.Palette); !ok || len(p) != len(colors) || r.Reduced {
			t.Errorf("%s: a palette %v of %d colors, reduced %v", name, ok, len(p), r.Reduced)
		}
		wrong := 0
		for y := range 30 {
			for x := range 40 {
				if color.NRGBAModel.Convert(got.At(x, y)) != direct.At(x, y) {
					wrong++
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d pixels have another color", name, wrong)
		}
	}
}

// TestGrayPhotosStayGray: colors would make them larger.
func TestGrayPhotosStayGray(t *testing.T) {
	r, err := render(asJPEG(t, image.NewGray(image.Rect(0, 0, 30, 20))), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := jpeg.DecodeConfig(bytes.NewReader(r.Data)); err != nil || c.ColorModel != color.GrayModel {
		t.Errorf("not gray, or %v", err)
	}
}
