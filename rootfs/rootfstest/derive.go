package rootfstest

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Derive makes a layout of an image of one layer from a tar. Each entry goes
// through change, which may rename it, and keeps it if it reports true. The
// image has the environment, and an entrypoint that does not exist.
func Derive(t testing.TB, tarFile string, env []string, change func(*tar.Header) bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layer.tar")
	if err := rewrite(tarFile, file, change); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCIUncompressedLayer), tarball.WithCompression(compression.None))
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Env = "linux", runtime.GOARCH, env
	config.Config.Entrypoint = []string{"/nonexistent", "--never-used"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := lay.AppendImage(img); err != nil {
		t.Fatal(err)
	}
	return dir
}

func rewrite(from, to string, change func(*tar.Header) bool) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for r := tar.NewReader(in); ; {
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
