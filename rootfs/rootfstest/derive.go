package rootfstest

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Derive makes a layout of an image of one layer from another layout's only
// image. Each entry goes through change, which may rename it, and keeps it if it
// reports true. Env replaces the image's.
func Derive(t testing.TB, layoutDir string, env []string, change func(*tar.Header) bool) string {
	t.Helper()
	index, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "layer.tar")
	if err := flatten(img, file, change); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	out, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := out.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	made = made.DeepCopy()
	made.OS, made.Architecture, made.Config.Env = config.OS, config.Architecture, env
	made.Config.Entrypoint = []string{"/nonexistent", "--never-used"}
	if out, err = mutate.ConfigFile(out, made); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := lay.AppendImage(out, layout.WithPlatform(v1.Platform{OS: config.OS, Architecture: config.Architecture})); err != nil {
		t.Fatal(err)
	}
	return dir
}

// flatten writes what an image's layers make together as one tar.
func flatten(img v1.Image, file string, change func(*tar.Header) bool) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	all := mutate.Extract(img)
	defer all.Close()
	w := tar.NewWriter(f)
	for r := tar.NewReader(all); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			return w.Close()
		}
		if err != nil {
			return err
		}
		if !change(hdr) {
			continue
		}
		if err := w.WriteHeader(hdr); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
}
