package images

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// errCorrupt says that content is not what its digest says.
var errCorrupt = errors.New("content is corrupt")

// Open returns the uncompressed bytes of a layer. The reader reports io.EOF
// only after both digests of the layer were found right, so whoever uses the
// bytes must read to the end before trusting them. Read is told of the
// compressed bytes as they come, if it is not nil.
func Open(l v1.Layer, read func(n int)) (io.ReadCloser, error) {
	diffID, err := l.DiffID()
	if err != nil {
		return nil, err
	}
	compressed := &compressedLayer{Layer: l, read: read}
	// CompressedToLayer knows gzip and zstd by their magic, whatever the media
	// type says.
	whole, err := partial.CompressedToLayer(compressed)
	if err != nil {
		return nil, err
	}
	rc, err := whole.Uncompressed()
	if err != nil {
		if compressed.body != nil {
			compressed.body.Close()
		}
		return nil, classify(context.Background(), err)
	}
	out, err := newVerifier(rc, diffID, -1)
	if err != nil {
		rc.Close()
		return nil, err
	}
	// A decompressor may stop at the end of its own format; what comes after it
	// in the blob has to be read for the compressed digest to be checked.
	out.after = compressed.drain
	return out, nil
}

// compressedLayer verifies and counts the compressed bytes of a layer.
type compressedLayer struct {
	v1.Layer
	read func(n int)
	body *verifier
}

func (l *compressedLayer) Compressed() (io.ReadCloser, error) {
	digest, err := l.Digest()
	if err != nil {
		return nil, err
	}
	size, err := l.Size()
	if err != nil {
		return nil, err
	}
	rc, err := l.Layer.Compressed()
	if err != nil {
		return nil, err
	}
	l.body, err = newVerifier(rc, digest, size)
	if err != nil {
		rc.Close()
		return nil, err
	}
	l.body.read = l.read
	return l.body, nil
}

func (l *compressedLayer) drain() error {
	_, err := io.Copy(io.Discard, l.body)
	return err
}

// verifier passes bytes on and turns the end of the stream into an error if
// they were not the expected ones.
type verifier struct {
	io.ReadCloser
	hash  hash.Hash
	want  v1.Hash
	size  int64 // -1 if unknown
	got   int64
	read  func(n int)
	after func() error // called at the end, before the digest is compared
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
	v.hash.Write(p[:n])
	v.got += int64(n)
	if v.read != nil {
		v.read(n)
	}
	if v.size >= 0 && v.got > v.size {
		return 0, fmt.Errorf("%w: %s is longer than its %d bytes", errCorrupt, v.want, v.size)
	}
	if err != io.EOF {
		return n, err
	}
	if v.after != nil {
		if err := v.after(); err != nil {
			return n, err
		}
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

// checkedImage is an image whose layers cannot be unpacked unverified.
type checkedImage struct{ v1.Image }

func (i checkedImage) Layers() ([]v1.Layer, error) {
	layers, err := i.Image.Layers()
	if err != nil {
		return nil, err
	}
	for n := range layers {
		layers[n] = checkedLayer{layers[n]}
	}
	return layers, nil
}

type checkedLayer struct{ v1.Layer }

// Uncompressed is Open without a count.
func (l checkedLayer) Uncompressed() (io.ReadCloser, error) { return Open(l.Layer, nil) }
