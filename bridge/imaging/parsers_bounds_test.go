package imaging

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row:    "picture",
		Shapes: pictures(),
		Read: func(ctx context.Context, r io.Reader) error {
			decoders := NewDecoders(Limits{Time: 100 * time.Millisecond})
			defer decoders.Wait()
			_, err := decoders.NewRenderer().Render(ctx, &lazyReaderAt{from: io.LimitReader(r, 32<<20)})
			return err
		},
	})
}

// pictures are shapes of pictures of all formats.
func pictures() []boundtest.Shape {
	const side = 4000
	gray := image.NewGray(image.Rect(0, 0, side, side))
	encoded := func(encode func(w io.Writer, m image.Image) error) []byte {
		var b bytes.Buffer
		if err := encode(&b, gray); err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	asGIF := func(w io.Writer, m image.Image) error {
		return gif.Encode(w, m, &gif.Options{NumColors: 2})
	}
	asJPEG := func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }
	const pngHead = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x0f\xa0\x00\x00\x0f\xa0\x08\x06\x00\x00\x00"
	pngWhole := pngHead + string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(pngHead[12:]))))
	gifHead := "GIF89a\xa0\x0f\xa0\x0f\x80\x00\x00\x00\x00\x00\xff\xff\xff"
	webp := func(w, h int) string {
		return "RIFF\xff\xff\xff\x7fWEBPVP8L\x00\xff\xff\x7f\x2f" + string(binary.LittleEndian.AppendUint32(nil, uint32(w-1|(h-1)<<14)))
	}
	return []boundtest.Shape{
		fixed("a PNG of many pixels", func() []byte { return encoded(png.Encode) }),
		fixed("a PNG of 16 bits and many pixels", func() []byte { return hugePNG(side, side/2, 16, 0) }),
		fixed("a PNG with passes", func() []byte { return hugePNG(side, side/2, 8, 1) }),
		fixed("a PNG of a line", func() []byte { return hugePNG(maxSide, 1, 8, 0) }),
		fixed("a JPEG of many pixels", func() []byte { return encoded(asJPEG) }),
		fixed("a GIF of many pixels", func() []byte { return encoded(asGIF) }),
		{Name: "a JPEG of many scans", Make: func(n int) []byte { return imagingtest.SlowJPEG(side, max(1, n/200)) }},
		boundtest.Repeated("a PNG of empty chunks", pngWhole, chunk("IDAT", nil), ""),
		boundtest.Repeated("a PNG of chunks to skip", pngWhole, chunk("tEXt", nil), ""),
		boundtest.Repeated("a PNG with a long chunk", pngWhole+"\x7f\xff\xff\xffzTXt", "x", ""),
		boundtest.Repeated("a PNG of palettes", pngWhole, chunk("PLTE", make([]byte, 768)), ""),
		boundtest.Repeated("a JPEG of fill bytes", "\xff\xd8", "\xff", ""),
		boundtest.Repeated("a JPEG of comments", "\xff\xd8", "\xff\xfe\x00\x02", ""),
		boundtest.Repeated("a JPEG of tables", "\xff\xd8", "\xff\xdb\x00\x43\x00"+strings.Repeat("\x01", 64), ""),
		boundtest.Repeated("a JPEG of restarts", "\xff\xd8", "\xff\xd0", ""),
		boundtest.Repeated("a GIF of extensions", gifHead, "!\xfe\x01x\x00", ""),
		boundtest.Repeated("a GIF of a long extension", gifHead+"!\xfe", "\x01x", ""),
		boundtest.Repeated("a GIF of frames", gifHead, ",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00", ""),
		boundtest.Repeated("a WebP of zeros", webp(3000, 3000), "\x00", ""),
		boundtest.Repeated("a WebP of ones", webp(3000, 3000), "\xff", ""),
		boundtest.Repeated("a WebP of patterns", webp(3000, 3000), "\x0d\x5a\x31\xc4\x77", ""),
		boundtest.Repeated("a WebP of chunks", "RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\x00\x00\xff\x00\x00", "XXXX\x00\x00\x00\x00", ""),
		boundtest.Repeated("bytes that are no picture", "", "x", ""),
	}
}

func fixed(name string, picture func() []byte) boundtest.Shape {
	once := sync.OnceValue(picture)
	return boundtest.Shape{Name: name, Make: func(int) []byte { return once() }}
}

// hugePNG is one of zeros in color with transparency.
func hugePNG(w, h uint32, bits, passes byte) []byte {
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	zeros := make([]byte, 1<<20)
	for left := int(h) * (1 + int(w)*4*int(bits/8)); left > 0; left -= len(zeros) { // a row begins with a byte; passes have more rows
		_, _ = z.Write(zeros[:min(left, len(zeros))])
	}
	_ = z.Close()
	head := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h), bits, 6, 0, 0, passes)
	return []byte("\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunk("IDAT", pixels.Bytes()) + chunk("IEND", nil))
}

func chunk(kind string, content []byte) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	b = append(append(b, kind...), content...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// A lazyReaderAt reads a stream as far as is asked for.
type lazyReaderAt struct {
	from io.Reader
	read []byte
	err  error
}

func (l *lazyReaderAt) ReadAt(p []byte, at int64) (int, error) {
	for buf := make([]byte, 64<<10); l.err == nil && int64(len(l.read)) < at+int64(len(p)); {
		var n int
		n, l.err = l.from.Read(buf)
		l.read = append(l.read, buf[:n]...)
	}
	if at >= int64(len(l.read)) {
		return 0, l.err
	}
	n := copy(p, l.read[at:])
	if n < len(p) {
		return n, l.err
	}
	return n, nil
}
