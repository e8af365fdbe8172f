package images

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/toolcell/toolcell/internal/contain"
)

// errCorrupt means that content does not match its digest.
var errCorrupt = errors.New("content is corrupt")

// Open returns the uncompressed bytes of a layer. The reader reports io.EOF
// only after it has verified both digests of the layer, so a caller must read to
// the end before it trusts the bytes. OnRead, if not nil, is called with the number of
// compressed bytes as they arrive. The reader ends with ctx, even if compressed bytes
// expand to nothing.
//
// Reading and decompressing run concurrently with the caller.
func (l *Layer) Open(ctx context.Context, onRead func(n int)) (io.ReadCloser, error) {
	body, err := l.openCompressed(onRead)
	if err != nil {
		return nil, sanitize(err)
	}
	compressed := newReadAhead(&contextReader{ctx: ctx, inner: body}, body)
	plain, err := newDecompressor(compressed)
	if err != nil {
		compressed.Close()
		return nil, err
	}
	stream := layerStream{newReadAhead(plain, compressed), plain}
	out, err := newVerifier(stream, l.DiffID, -1)
	if err != nil {
		stream.Close()
		return nil, err
	}
	return out, nil
}

// A layerStream is the uncompressed bytes of a layer.
type layerStream struct {
	*readAhead
	from *decompressor
}

// Close releases the decompressor after the last goroutine has stopped reading from it.
func (s layerStream) Close() error {
	err := s.readAhead.Close()
	s.from.release()
	return err
}

// openCompressed verifies and counts the compressed bytes of a layer.
func (l *Layer) openCompressed(onRead func(n int)) (io.ReadCloser, error) {
	rc, err := l.blobs.open(l.file)
	if err != nil {
		return nil, err
	}
	if l.undigested {
		return &verifier{ReadCloser: rc, size: -1, onRead: onRead}, nil
	}
	body, err := newVerifier(rc, l.Digest, l.Size)
	if err != nil {
		rc.Close()
		return nil, err
	}
	body.onRead = onRead
	return body, nil
}

// A verifier passes bytes on, and fails at the end of the stream if they do not match the
// expected digest and size.
type verifier struct {
	io.ReadCloser
	hash   hash.Hash // nil if only the bytes are counted
	want   v1.Hash
	size   int64 // -1 if unknown
	got    int64
	onRead func(n int)
}

func newVerifier(rc io.ReadCloser, want v1.Hash, size int64) (*verifier, error) {
	h, err := v1.Hasher(want.Algorithm)
	if err != nil {
		return nil, err
	}
	return &verifier{ReadCloser: rc, hash: h, want: want, size: size}, nil
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	if v.hash != nil {
		v.hash.Write(p[:n])
	}
	v.got += int64(n)
	if v.onRead != nil {
		v.onRead(n)
	}
	if v.size >= 0 && v.got > v.size {
		return 0, fmt.Errorf("%w: %s is longer than its %d bytes", errCorrupt, v.want, v.size)
	}
	if err != io.EOF || v.hash == nil {
		return n, err
	}
	if v.size >= 0 && v.got != v.size {
		return n, fmt.Errorf("%w: %s ends after %d of %d bytes", errCorrupt, v.want, v.got, v.size)
	}
	if sum := hex.EncodeToString(v.hash.Sum(nil)); sum != v.want.Hex {
		return n, fmt.Errorf("%w: want %s, got %s:%s", errCorrupt, v.want, v.want.Algorithm, sum)
	}
	return n, io.EOF
}

// verifyBytes checks content that is held in memory.
func verifyBytes(b []byte, want v1.Hash) error {
	v, err := newVerifier(io.NopCloser(bytes.NewReader(b)), want, int64(len(b)))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, v)
	return err
}

// A readAhead reads from another reader in its own goroutine, a block ahead.
type readAhead struct {
	io.Reader
	pipe    *io.PipeReader
	wake    io.Closer     // interrupts a Read of the other reader
	stopped chan struct{} // closed when the goroutine has ended
	once    sync.Once
}

const blockSize = 256 << 10

func newReadAhead(inner io.Reader, wake io.Closer) *readAhead {
	out, in := io.Pipe()
	a := &readAhead{Reader: bufio.NewReaderSize(out, blockSize), pipe: out, wake: wake, stopped: make(chan struct{})}
	go func() {
		defer close(a.stopped)
		defer contain.Recover("reading a layer", func(err error) { in.CloseWithError(err) }) // in place of the block that panicked
		_, err := io.CopyBuffer(in, inner, make([]byte, blockSize))
		in.CloseWithError(err)
	}()
	return a
}

// Close ends the goroutine. After that, nothing reads from the inner reader.
func (a *readAhead) Close() (err error) {
	a.once.Do(func() {
		defer contain.Error("closing a layer", &err)
		a.pipe.Close()
		err = a.wake.Close()
		<-a.stopped
	})
	return err
}
