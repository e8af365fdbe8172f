package rootfs

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// The entries that test layers are made of.
type entry = unpacktest.Entry

var (
	file, program, dir = unpacktest.File, unpacktest.Program, unpacktest.Dir
	symlink, hardlink  = unpacktest.Symlink, unpacktest.Hardlink
	pack, listTree     = unpacktest.Tar, unpacktest.List
)

// pythonImage is the least that a Store accepts, and further layers.
func pythonImage(t testing.TB, more ...[]byte) v1.Image {
	t.Helper()
	return imageOf(t, append([][]byte{pack(t, dir("usr/bin"), program("usr/bin/python3.12"), symlink("usr/bin/python3", "python3.12"))}, more...)...)
}

func imageOf(t testing.TB, tars ...[]byte) v1.Image {
	t.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, b := range tars {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

func withEnv(t *testing.T, img v1.Image, env ...string) v1.Image {
	t.Helper()
	img, err := mutate.Config(img, v1.Config{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// testRegistry is an in-memory registry that counts the blobs it hands out.
type testRegistry struct {
	host  string
	blobs atomic.Int32
	all   atomic.Int32
	// before is called for each GET of a blob, if it is set.
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	stop   func()
}

func newRegistry(t testing.TB) *testRegistry {
	t.Helper()
	r := &testRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.all.Add(1)
		if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/") {
			r.blobs.Add(1)
			if f := r.before.Load(); f != nil && (*f)(w, req) {
				return
			}
		}
		inner.ServeHTTP(w, req)
	}))
	r.host, r.stop = strings.TrimPrefix(srv.URL, "http://"), srv.Close
	t.Cleanup(srv.Close)
	return r
}

// onBlob sets what happens when a blob is asked for; f says whether it has
// answered the request itself.
func (r *testRegistry) onBlob(f func(http.ResponseWriter, *http.Request) bool) { r.before.Store(&f) }

func (r *testRegistry) push(t testing.TB, ref string, img v1.Image) string {
	t.Helper()
	full := r.host + "/" + ref
	n, err := name.ParseReference(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(n, img); err != nil {
		t.Fatal(err)
	}
	return full
}

func openStore(t testing.TB) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store"), images.Puller{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leftovers lists what is in the store beside finished images.
func leftovers(t *testing.T, s *Store) (found []string) {
	t.Helper()
	for _, folder := range []string{s.images.dir, s.layers.dir, s.tags.dir} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				found = append(found, e.Name())
			}
		}
	}
	return found
}
