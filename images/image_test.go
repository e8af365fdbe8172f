package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestImageSaysWhatIsWrongWithAReference(t *testing.T) {
	_, want := Parse("Python:3")
	if img, err := (Puller{}).Image(t.Context(), "Python:3"); err == nil || err.Error() != want.Error() {
		t.Errorf("got %+v, %v, want %v", img, err, want)
	}
}

// TestImagesOfOldToolsAreImages, whatever they call their configuration.
func TestImagesOfOldToolsAreImages(t *testing.T) {
	for _, kind := range []types.MediaType{"", "application/octet-stream"} {
		img := liar{Image: hostImage(t), manifest: func(m *v1.Manifest) { m.Config.MediaType = kind }}
		dir := layoutOf(t, map[string]v1.Image{"3": img.Image})
		rewrite(t, dir, img)
		if err := pullAll(Puller{}, "oci:"+dir); err != nil {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// TestCorruptionIsToldBeforeWrongJSON: the tool that made the image is not to blame.
func TestCorruptionIsToldBeforeWrongJSON(t *testing.T) {
	img := hostImage(t)
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	dir := layoutOf(t, map[string]v1.Image{"3": img})
	if err := os.WriteFile(filepath.Join(dir, blobName(config)), []byte("[1]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pullAll(Puller{}, "oci:"+dir); !errors.Is(err, errCorrupt) {
		t.Errorf("got %v", err)
	}
}

// TestManifestWithoutAConfiguration: a registry may answer to any name of a blob.
func TestManifestWithoutAConfiguration(t *testing.T) {
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			fmt.Fprintf(w, `{"layers":[{"digest":"sha256:%064d","size":1}]}`, 0)
			return
		}
		fmt.Fprint(w, `{"rootfs":{"diff_ids":[""]}}`)
	}))
	defer registry.Close()
	err := pullAll(Puller{}, strings.TrimPrefix(registry.URL, "http://")+"/py:3")
	if err == nil || !strings.Contains(err.Error(), "reading configuration: unsupported hash") {
		t.Errorf("got %v", err)
	}
}

// TestEndOfAPullIsItsCause alone, wherever it was.
func TestEndOfAPullIsItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				cancel(errors.New("the user has stopped it"))
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/py:3", hostImage(t))
	_, err := Puller{}.Image(ctx, host+"/py:3")
	if want := fmt.Sprintf("reading image %q: the user has stopped it", host+"/py:3"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
