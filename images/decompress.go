package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

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

// An ahead reads from another reader in a goroutine of its own, some blocks
// ahead of whoever reads from it.
type ahead struct {
	inner io.Reader
	wake  func() error // makes a Read of inner that waits return
	full  chan block
	free  chan []byte
	quit  chan struct{}
	gone  chan struct{} // closed when the goroutine has ended
	once  sync.Once

	now  []byte // not read yet
	buf  []byte // that it is in
	done error
}

type block struct {
	buf []byte
	n   int
	err error
}

const (
	aheadBlocks = 4
	blockSize   = 256 << 10
)

func newAhead(inner io.Reader, wake func() error) *ahead {
	a := &ahead{
		inner: inner, wake: wake, full: make(chan block, aheadBlocks), free: make(chan []byte, aheadBlocks),
		quit: make(chan struct{}), gone: make(chan struct{}),
	}
	for range aheadBlocks {
		a.free <- nil
	}
	go a.fill()
	return a
}

func (a *ahead) fill() {
	defer close(a.gone)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.quit:
			return
		}
		if buf == nil {
			buf = make([]byte, blockSize)
		}
		n, err := fillBlock(a.inner, buf)
		a.full <- block{buf, n, err} // never blocks: there are no more blocks than places
		if err != nil {
			return
		}
	}
}

// fillBlock is io.ReadFull, but keeps the reader's own error.
func fillBlock(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = r.Read(buf[n:])
		n += more
	}
	return n, err
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.now) == 0 {
		if a.done != nil {
			return 0, a.done
		}
		if a.buf != nil {
			a.free <- a.buf
			a.buf = nil
		}
		var b block
		select {
		case b = <-a.full:
		case <-a.quit:
			return 0, fs.ErrClosed
		}
		a.buf, a.now, a.done = b.buf, b.buf[:b.n], b.err
	}
	n := copy(p, a.now)
	a.now = a.now[n:]
	return n, nil
}

// Close ends the goroutine. The inner reader is at rest after that.
func (a *ahead) Close() (err error) {
	a.once.Do(func() {
		close(a.quit)
		err = a.wake()
		<-a.gone
	})
	return err
}
