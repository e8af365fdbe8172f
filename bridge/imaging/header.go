package imaging

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"

	"golang.org/x/image/webp"
)

// A pictureFormat is one that can be decoded.
type pictureFormat struct {
	Ext    string
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	memory func(picture io.Reader, c image.Config) int // that its decoder takes, in bytes
}

// Formats holds the formats that can be decoded, by media type. The first bytes
// of a picture decide which it is; the sandbox's own claim is ignored.
var Formats = map[string]pictureFormat{
	"image/png":  {".png", configOfPNG, decodePNG, memoryOfPNG},
	"image/jpeg": {".jpg", jpeg.DecodeConfig, jpeg.Decode, memoryOfJPEG},
	"image/gif":  {".gif", gif.DecodeConfig, gif.Decode, memoryOfGIF}, // the first frame
	"image/webp": {".webp", webp.DecodeConfig, webp.Decode, memoryOfWebP},
}

// maxSide bounds the sides of a picture. It is the most that JPEG and GIF can
// have; tables for a row or a column are small with it.
const maxSide = 1<<16 - 1

// A header is what is known of a picture before it is decoded.
type header struct {
	mime          string
	format        pictureFormat
	width, height int
	memory        int // that the decoder takes, in bytes
}

// readHeader reads the beginning of a picture.
func readHeader(picture io.ReaderAt, check func() error) (h header, err error) {
	beginning := make([]byte, 512) // as much as DetectContentType considers
	n, err := picture.ReadAt(beginning, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("reading the picture: %w", err)
	}
	h.mime = http.DetectContentType(beginning[:n])
	var ok bool
	if h.format, ok = Formats[h.mime]; !ok {
		return h, errors.New("it is neither PNG, JPEG, GIF nor WebP")
	}
	config, err := h.format.config(newReader(picture, check))
	if over := check(); over != nil {
		return h, over
	}
	if err != nil {
		return h, fmt.Errorf("reading the picture's size: %w", err)
	}
	h.width, h.height, h.memory = config.Width, config.Height, h.format.memory(newReader(picture, check), config)
	return h, nil
}

var errNoPixels = errors.New("it has no pixels")

// check refuses a picture that is too large by itself: some kilobytes can stand
// for gigabytes.
func (h header) check(maxPixels int) error {
	switch {
	case h.width <= 0 || h.height <= 0:
		return errNoPixels
	case h.width > maxPixels/h.height:
		return fmt.Errorf("it has %d×%d pixels, the most is %d million", h.width, h.height, maxPixels>>20)
	case max(h.width, h.height) > maxSide:
		return fmt.Errorf("it has %d×%d pixels, the most on a side is %d", h.width, h.height, maxSide)
	case h.memory > maxMemory:
		return fmt.Errorf("decoding its %d×%d pixels takes %d MiB, the most is %d MiB", h.width, h.height, h.memory>>20, maxMemory>>20)
	}
	return nil
}

func configOfPNG(picture io.Reader) (image.Config, error) {
	return png.DecodeConfig(newPNGChunks(picture))
}

func decodePNG(picture io.Reader) (image.Image, error) { return png.Decode(newPNGChunks(picture)) }

// memoryOfPNG knows that a pixel takes twice as much with 16 bits a channel,
// whatever its other channels, and that the passes of an interlaced picture are
// pictures of their own.
func memoryOfPNG(picture io.Reader, c image.Config) int {
	const depth, interlace = 24, 28 // of the first chunk, whose place is fixed
	var head [interlace + 1]byte
	_, err := io.ReadFull(newPNGChunks(picture), head[:])
	pixel := 4
	if head[depth] == 16 || err != nil {
		pixel = 8
	}
	if head[interlace] != 0 || err != nil {
		pixel *= 2
	}
	return pixel * c.Width * c.Height
}

// memoryOfGIF counts one byte for a pixel, and another one if it is interlaced.
func memoryOfGIF(_ io.Reader, c image.Config) int { return 2 * c.Width * c.Height }

// memoryOfWebP counts two copies, before and after a palette is undone. The
// tables of codes are not known before.
func memoryOfWebP(_ io.Reader, c image.Config) int { return 8 * c.Width * c.Height }

// memoryOfJPEG counts a byte for each sample of whole blocks. A progressive picture has four
// more for a coefficient, and RGB and CMYK are copied to four bytes a pixel.
func memoryOfJPEG(picture io.Reader, c image.Config) int {
	const block = 8 * 4 // pixels of a side, with the largest factor
	whole := func(side int) int { return (side + block - 1) / block * block }
	r := bufio.NewReader(picture)
	frame := frameOfJPEG(r)
	sum := whole(c.Width) * whole(c.Height) * frame.samples / frame.of
	if frame.progressive {
		sum *= 5
	}
	if c.ColorModel == color.RGBAModel || c.ColorModel == color.CMYKModel || maySayRGB(r) {
		sum += 4 * c.Width * c.Height
	}
	return sum
}

// maySayRGB looks in the rest of a picture for a segment that has its samples taken for RGB,
// or no longer for those of JFIF: the decoder heeds one wherever it stands. Among samples
// themselves, 0xff is followed by a zero or the number of a restart.
func maySayRGB(r *bufio.Reader) bool {
	const app0, app14 = 0xe0, 0xee
	for {
		switch _, err := r.ReadSlice(0xff); {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return false
		}
		if next, err := r.Peek(1); err == nil && (next[0] == app0 || next[0] == app14) {
			return true
		}
	}
}

// A jpegFrame is what the header of a frame says about the memory of its decoder.
type jpegFrame struct {
	progressive bool
	samples, of int // so many samples of so many pixels
}

// largestFrame is taken for what frameOfJPEG cannot read.
var largestFrame = jpegFrame{true, 4, 1}

// frameOfJPEG looks for the header of the frame, as the decoder does. It knows
// fewer oddities between the segments than the decoder does.
func frameOfJPEG(r *bufio.Reader) jpegFrame {
	const sof0, sof2, fill = 0xc0, 0xc2, 0xff
	_, _ = r.Discard(2) // start of image
	for {
		segment, err := r.Peek(4) // 0xff, marker, length (2)
		if err != nil || segment[0] != 0xff {
			return largestFrame
		}
		switch marker := segment[1]; {
		case marker == fill:
			_, _ = r.Discard(1)
		case sof0 <= marker && marker <= sof2:
			return readFrame(r, marker == sof2)
		case marker == 0 || 0xd0 <= marker && marker <= 0xd9: // without a length
			return largestFrame
		default:
			_, _ = r.Discard(2 + int(segment[2])<<8 + int(segment[3]))
		}
	}
}

// readFrame reads the header of a frame: marker (2), length (2), bits, height (2),
// width (2), count of components; and of each component identifier, factors, table.
func readFrame(r *bufio.Reader, progressive bool) jpegFrame {
	head, err := r.Peek(10)
	if err != nil {
		return largestFrame
	}
	n := int(head[9])
	_, _ = r.Discard(10)
	components, err := r.Peek(3 * n)
	if err != nil || n == 0 {
		return largestFrame
	}
	frame := jpegFrame{progressive: progressive, of: max(1, samplesOf(components[1]))}
	if n == 1 {
		frame.samples, frame.of = 1, 1 // whatever its factors
		return frame
	}
	for i := range n {
		frame.samples += samplesOf(components[3*i+1])
	}
	return frame
}

// samplesOf multiplies the factors of a component, across and down.
func samplesOf(factors byte) int { return int(factors>>4) * int(factors&15) }
