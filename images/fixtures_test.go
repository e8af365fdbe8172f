package images

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// content is what the test layers hold: more than a buffer, not all the same.
var content = strings.Repeat("import this\n", 20000)

func tarOf(t testing.TB, name, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// layerOf makes a layer compressed with gzip, zstd or not at all.
func layerOf(t testing.TB, name string, comp compression.Compression) v1.Layer {
	t.Helper()
	b := tarOf(t, name, name+content)
	if comp == compression.None {
		return static.NewLayer(b, types.OCIUncompressedLayer)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		tarball.WithCompression(comp), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf makes an image for a platform.
func imageOf(t testing.TB, p v1.Platform, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func hostImage(t testing.TB) v1.Image {
	return imageOf(t, hostPlatform(), layerOf(t, "a", compression.GZip), layerOf(t, "b", compression.GZip))
}

// serve starts a registry behind wrap and returns its host:port.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t *testing.T, ref string, what remote.Taggable) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	switch w := what.(type) {
	case v1.Image:
		err = remote.Write(r, w)
	case v1.ImageIndex:
		err = remote.WriteIndex(r, w)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// layoutOf writes images, by tag, into a layout.
func layoutOf(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for tag, img := range images {
		if err := lay.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}), layout.WithPlatform(hostPlatform())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// archiveOf packs a directory as a tar.
func archiveOf(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func savedOf(t testing.TB, ref string, img v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

// readAll reads every layer of an image to its end.
func readAll(img v1.Image) (string, error) {
	layers, err := img.Layers()
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, l := range layers {
		rc, err := l.Uncompressed()
		if err != nil {
			return "", err
		}
		_, err = io.Copy(&all, rc)
		rc.Close()
		if err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

// readImage reads every layer of an image that was opened, to its end.
func readImage(img *Image) (string, error) {
	var all strings.Builder
	for _, l := range img.Layers {
		rc, err := l.Open(context.Background(), nil)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(&all, rc)
		rc.Close()
		if err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

// pullAll reads an image as a user of the package would.
func pullAll(p Puller, ref string) error {
	p.Backoff = time.Millisecond
	img, err := p.Image(context.Background(), ref)
	if err != nil {
		return err
	}
	_, err = readImage(img)
	return err
}
