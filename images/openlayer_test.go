package images

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/toolcell/toolcell/internal/contain"
)

// A bodyBlob is blobs of one body.
type bodyBlob struct{ io.ReadCloser }

func (b bodyBlob) open(string) (io.ReadCloser, error) { return b.ReadCloser, nil }

// layerFrom is a layer of zero digests, which can be read but does not verify.
func layerFrom(body io.ReadCloser) *Layer {
	h := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}
	return &Layer{Digest: h, DiffID: h, Size: 1 << 40, blobs: bodyBlob{body}}
}

// TestLayersCloseTheirBodies, read to the end or not.
func TestLayersCloseTheirBodies(t *testing.T) {
	zeros := make([]byte, 8*blockSize) // more than is read ahead
	for name, c := range map[string]struct {
		body   []byte
		change func(*Layer)
		read   int64
		want   string // of the error of Open
	}{
		"read to the end":           {zeros, nil, 1 << 40, ""},
		"read a little of":          {zeros, nil, 10, ""},
		"not read":                  {zeros, nil, 0, ""},
		"in xz":                     {append([]byte("\xfd7zXZ\x00"), zeros...), nil, 0, "compressed with xz"},
		"without its second digest": {zeros, func(l *Layer) { l.DiffID = v1.Hash{} }, 0, "unsupported hash"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open atomic.Int32
				l := layerFrom(watch(bytes.NewReader(c.body), &open))
				if c.change != nil {
					c.change(l)
				}
				in, err := l.Open(t.Context(), nil)
				switch {
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("got %v, want %s", err, c.want)
				case c.want == "" && err != nil:
					t.Fatal(err)
				case c.want == "":
					_, _ = io.CopyN(io.Discard, in, c.read)
					if err := in.Close(); err != nil {
						t.Error(err)
					}
				}
				if open.Load() != 0 {
					t.Error("its body is still open")
				}
			})
		})
	}
}

// TestLayersAreReadNoFurtherThanTheirSize: a body may have no end.
func TestLayersAreReadNoFurtherThanTheirSize(t *testing.T) {
	more := errors.New("read on")
	l := layerFrom(io.NopCloser(io.MultiReader(strings.NewReader(content), iotest.ErrReader(more))))
	l.Size = 10
	in, err := l.Open(t.Context(), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, in)
		in.Close()
	}
	if !errors.Is(err, errCorrupt) || errors.Is(err, more) {
		t.Errorf("got %v", err)
	}
}

// A lateBody blocks after its first bytes until it is closed, and then takes its time.
type lateBody struct {
	began, ended bool
	closed       chan struct{}
}

func (b *lateBody) Read(p []byte) (int, error) {
	if !b.began {
		b.began = true
		return len(p), nil
	}
	<-b.closed
	time.Sleep(time.Second)
	b.ended = true
	return 0, io.ErrClosedPipe
}

func (b *lateBody) Close() error {
	close(b.closed)
	return nil
}

func TestClosingALayerWaitsForItsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &lateBody{closed: make(chan struct{})}
		in, err := layerFrom(body).Open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil || !body.ended {
			t.Errorf("ended: %v, %v", body.ended, err)
		}
	})
}

// A panickingBody panics after its first bytes, and when it is closed.
type panickingBody struct{ io.Reader }

func (b *panickingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		panic("reading")
	}
	return n, nil
}

func (b *panickingBody) Close() error { panic("closing") }

// TestPanicsOfALayerStayInIt: the goroutines that read it are its own.
func TestPanicsOfALayerStayInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, err := layerFrom(&panickingBody{strings.NewReader(content)}).Open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, in); n != int64(len(content)) || !errors.Is(err, contain.ErrInternal) {
			t.Errorf("read %d bytes: %v", n, err)
		}
		if err := in.Close(); !errors.Is(err, contain.ErrInternal) {
			t.Errorf("closed: %v", err)
		}
	})
}
