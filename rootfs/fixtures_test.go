package rootfs

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
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
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

// The entries that test layers are made of.

type entry struct {
	tar.Header
	body string
}

func file(name, body string) entry {
	return entry{tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}, body}
}

func program(name string) entry {
	e := file(name, "#!/bin/sh\n")
	e.Mode = 0o755
	return e
}

func dir(name string) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}}
}

func symlink(name, target string) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}}
}

func hardlink(name, target string) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}}
}

func whiteout(name string) entry { return file(name, "") }

// pack writes entries as a tar.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// unpackAll unpacks layers into a new directory beside which lies a file that
// nothing may touch.
func unpackAll(t *testing.T, layers ...[]byte) (string, error) {
	t.Helper()
	outside := t.TempDir()
	root := filepath.Join(outside, "root")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rootdir.RemoveAll(root); err != nil {
			t.Error(err)
		}
		left, _ := os.ReadDir(outside)
		got, _ := os.ReadFile(filepath.Join(outside, "secret"))
		if len(left) != 1 || string(got) != "untouched" {
			t.Errorf("something outside of the root was changed: %v, %q", left, got)
		}
	})
	r, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := unpack.NewMerger(r, unpack.NewBudget(1<<20, 1000))
	for _, l := range layers {
		if err := unpackOne(t, m, bytes.NewReader(l)); err != nil {
			return root, err
		}
	}
	return root, m.Finish()
}

// unpackOne unpacks a layer into a folder of its own and merges it.
func unpackOne(t testing.TB, m *unpack.Merger, layer io.Reader) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&unpack.Record{}).Unpack(dir, layer, m.Budget); err != nil {
		return err
	}
	return m.Merge(dir)
}

// tree lists a directory: "name" of a directory ends in "/", a symlink shows
// its target, a file its content.
func tree(t *testing.T, root string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			name += "/"
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			name += "->" + target
		default:
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name += "=" + string(body)
		}
		lines = append(lines, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, " ")
}

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
	for _, folder := range []string{rootsFolder, layersFolder, "refs"} {
		entries, err := os.ReadDir(filepath.Join(s.dir, folder))
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
