package imaging

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
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

// TestPNGIsReadAsItIsButForTexts: nothing is put at its end, where a decoder could take
// it for another chunk.
func TestPNGIsReadAsItIsButForTexts(t *testing.T) {
	whole := asPNG(t, gradient(3, 2))
	end := len(whole) - len(chunk("IEND", nil))
	for name, tt := range map[string]struct {
		data, want []byte
		err        error
	}{
		"without texts":     {whole, whole, nil},
		"with a text":       {slices.Concat(whole[:end], []byte(chunk("tEXt", []byte("by me"))), whole[end:]), whole, nil},
		"cut before a head": {whole[:end], whole[:end], nil},
		"cut in a text":     {slices.Concat(whole[:end], []byte("\x00\x00\x00\x09tEXtby")), whole[:end], nil},
		"cut in a head":     {whole[:end+5], whole[:end], io.ErrUnexpectedEOF},
	} {
		r := newPNGChunks(bytes.NewReader(tt.data))
		if got, err := io.ReadAll(r); !bytes.Equal(got, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, err, tt.want, tt.err)
		}
		if n, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the end: %d bytes, %v", name, n, err)
		}
	}
}
