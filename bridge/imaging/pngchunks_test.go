package imaging

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"testing"
)

// TestPNGChecksumsOfTextsDoNotCount: the picture of server-everything has a color
// profile with a wrong one.
func TestPNGChecksumsOfTextsDoNotCount(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	const afterHeader = 8 + 8 + 13 + 4
	chunk := []byte("\x00\x00\x00\x03iCCPabcXXXX")
	profile := slices.Concat(b.Bytes()[:afterHeader], chunk, b.Bytes()[afterHeader:])
	first := slices.Concat(b.Bytes()[:8], chunk, b.Bytes()[8:])
	for name, data := range map[string][]byte{"profile": profile, "before the header": first, "none": b.Bytes()} {
		r, err := NewDecoders(Limits{}).NewRenderer().Render(t.Context(), bytes.NewReader(data))
		if err != nil || r.Width != 3 || r.Height != 2 {
			t.Errorf("%s: %d×%d, %v", name, r.Width, r.Height, err)
		}
	}
	broken := bytes.Clone(b.Bytes())
	broken[afterHeader+12] ^= 1 // of the pixels
	for name, data := range map[string][]byte{"pixels": broken, "cut": profile[:afterHeader+10], "long": append(bytes.Clone(b.Bytes()[:afterHeader]), "\xff\xff\xff\xffiCCPabc"...)} {
		if _, err := NewDecoders(Limits{}).NewRenderer().Render(t.Context(), bytes.NewReader(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
