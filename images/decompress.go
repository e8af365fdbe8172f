package images

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the window of a zstd stream, in bytes: the default of `zstd --long`. The
// decoder uses twice as much memory.
const maxWindow = 128 << 20

var (
	gzipMagic  = []byte{0x1f, 0x8b}
	zstdMagic  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	xzMagic    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	bzip2Magic = []byte("BZh")
)

// isZstd reports whether a stream begins with a zstd frame, which may be a skippable one
// (RFC 8878, section 3.1.2).
func isZstd(head []byte) bool {
	skippable := len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
	return skippable || bytes.HasPrefix(head, zstdMagic)
}

// isCompressed reports whether a stream begins with the magic number of a compression,
// supported or not.
func isCompressed(head []byte) bool {
	return bytes.HasPrefix(head, gzipMagic) || isZstd(head) || bytes.HasPrefix(head, xzMagic) || bytes.HasPrefix(head, bzip2Magic)
}

// A decompressor decompresses a stream. It recognizes gzip and zstd by their magic numbers,
// whatever the media type says, and treats anything else as uncompressed. It refuses xz and
// bzip2, which are not in the OCI image specification. After the end of the compressed data
// it reads to the end of the stream and reports its error.
type decompressor struct {
	out     io.Reader
	in      io.Reader
	release func()
}

func newDecompressor(r io.Reader) (*decompressor, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(len(xzMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	d := &decompressor{out: in, in: in, release: func() {}}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		if d.out, err = gzip.NewReader(in); err != nil {
			return nil, damaged(err)
		}
	case isZstd(head):
		// In low-memory mode, the decoder moves the whole window for each block, and a block
		// can have four bytes: each took some 20 ms.
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(false))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		d.out, d.release = z, z.Close
	case bytes.HasPrefix(head, xzMagic):
		return nil, errors.New("it is compressed with xz, which images may not be: make it again with gzip or zstd")
	case bytes.HasPrefix(head, bzip2Magic):
		return nil, errors.New("it is compressed with bzip2, which images may not be: make it again with gzip or zstd")
	}
	return d, nil
}

func (d *decompressor) Read(p []byte) (int, error) {
	n, err := d.out.Read(p)
	if err == io.EOF {
		// Trailing bytes count for the compressed digest.
		if _, drainErr := io.Copy(io.Discard, d.in); drainErr != nil {
			return n, drainErr
		}
		return n, err
	}
	return n, damaged(err)
}

// damaged marks errors of the compression format as errCorrupt, but not errors of the
// stream below.
func damaged(err error) error {
	path, registry := (*fs.PathError)(nil), (*RegistryError)(nil)
	known := errors.Is(err, errCorrupt) || errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrClosedPipe)
	if err == nil || known || errors.As(err, &path) || errors.As(err, &registry) {
		return err
	}
	return fmt.Errorf("%w: %w", errCorrupt, err)
}
