package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What a hostile image or registry may try against a store, by name. Package unpack
// has the attacks of a single image.

// A file written through a hard link must not change the layer it comes from,
// which other images share.
func TestAttackWriteThroughAHardLinkToALowerLayer(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	base := pack(t, file("f", "original"))
	victim := reg.push(t, "victim:1", pythonImage(t, base))
	attacker := reg.push(t, "attacker:1", pythonImage(t, base, pack(t, hardlink("g", "f"), file("g", "changed"), file("f", "changed"))))
	ensureAll(t, s, attacker)
	root := ensureAll(t, s, victim)[0]
	if got, err := os.ReadFile(filepath.Join(root.Dir, "f")); err != nil || string(got) != "original" {
		t.Errorf("the other image's file is %q, %v", got, err)
	}
}

// bomb is a layer that expands about a thousandfold.
func bomb(t *testing.T, size int64) v1.Layer {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: size})
	if err == nil {
		_, err = io.CopyN(w, zeros{}, size)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return static.NewLayer(out.Bytes(), types.OCILayer)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

//test:alone
func TestAttackBomb(t *testing.T) {
	const size = 200 << 20
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomb(t, size))
	if err != nil {
		t.Fatal(err)
	}
	// static.Layer has the compressed digest for both: it is never compared,
	// since the limit comes before the end.
	ref := newRegistry(t).push(t, "py:3", img)
	s := openStore(t)
	s.MaxBytes = 100 << 20
	if _, err := s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_SIZE") {
		t.Errorf("got %v", err)
	}
	nothingKept(t, s)
	if n := layersIn(t, s); n != 0 {
		t.Errorf("%d layers are kept", n)
	}
}

// TestAttackEndlessBlob: a registry that sends more than the manifest says.
func TestAttackEndlessBlob(t *testing.T) {
	reg := newRegistry(t)
	img := pythonImage(t)
	ref := reg.push(t, "py:3", img)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	reg.onBlob(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest.String()) {
			return false
		}
		for block := make([]byte, 64<<10); r.Context().Err() == nil; sent.Add(int64(len(block))) {
			if _, err := w.Write(block); err != nil {
				return true
			}
		}
		return true
	})
	s := openStore(t)
	if _, err := s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), digest.String()) {
		t.Errorf("got %v", err)
	}
	if sent.Load() > 64<<20 {
		t.Errorf("took %d MB", sent.Load()>>20)
	}
	nothingKept(t, s)
}
