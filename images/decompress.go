package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd stream may ask for: what
// `zstd --long` takes by itself.
const maxWindow = 128 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// A decompressor undoes the compression of a stream. It knows gzip and zstd by
// their beginnings, whatever a media type says; anything else is taken for
// uncompressed. After the end of its format it reads on to the end of the
// stream, whose error it then reports.
type decompressor struct {
	out     io.Reader
	in      io.Reader
	release func()
}

func newDecompressor(r io.Reader) (*decompressor, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	d := &decompressor{out: in, in: in, release: func() {}}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		if d.out, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("%w: %w", errCorrupt, err)
		}
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		d.out, d.release = z, z.Close
	}
	return d, nil
}

func (d *decompressor) Read(p []byte) (int, error) {
	n, err := d.out.Read(p)
	if err == io.EOF {
		// What comes after the end counts for the compressed digest.
		if _, drainErr := io.Copy(io.Discard, d.in); drainErr != nil {
			return n, drainErr
		}
	}
	return n, err
}
