// Package packagestest has an index of packages for tests of what stands on rootfs/packages.
package packagestest

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/rootfs/packages"
)

// An Index serves wheels on the loopback, and stands in for the resolver: every request gets
// all of them.
type Index struct {
	URL string

	server   *httptest.Server
	mu       sync.Mutex
	wheels   map[string][]byte // by NAME VERSION
	resolved int
	fetched  int
}

// New starts an index, which ends with the test.
func New(t testing.TB) *Index {
	x := &Index{wheels: map[string][]byte{}}
	x.server = httptest.NewServer(http.HandlerFunc(x.serve))
	x.URL = x.server.URL
	t.Cleanup(x.server.Close)
	return x
}

// Store opens an empty store, which ends with the test.
func Store(t testing.TB) *packages.Store {
	s := packages.Open(filepath.Join(t.TempDir(), "packages"), "/bin/true")
	t.Cleanup(func() { s.Close() })
	return s
}

// Add puts a wheel into the index, in place of other versions of the package. Files are by
// their path in the wheel, beside its METADATA and RECORD.
func (x *Index) Add(t testing.TB, name, version string, files map[string]string) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.wheels, func(other string, _ []byte) bool { return strings.HasPrefix(other, name+" ") })
	x.wheels[name+" "+version] = wheel(t, name, version, files)
}

// Remove takes a package out of the index.
func (x *Index) Remove(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.wheels, func(other string, _ []byte) bool { return strings.HasPrefix(other, name+" ") })
}

// Close stops the index: nothing can be fetched from it any more.
func (x *Index) Close() { x.server.Close() }

// Count returns how often versions were chosen, and how many wheels were fetched.
func (x *Index) Count() (resolved, fetched int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.resolved, x.fetched
}

// Request returns one for packages of the index, which refuses none.
func (x *Index) Request() packages.Request {
	return packages.Request{
		Image: packages.Image{ID: "sha256-0123", Python: "/usr/bin/python3"}, Ref: "python:test", Run: x.run, Index: x.URL + "/simple",
		MaxBytes: 1 << 20, MaxCount: 20, MaxTime: time.Minute,
		Check: func(string, string) error { return nil },
	}
}

func (x *Index) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for which, content := range x.wheels {
		if fileName(which) == path.Base(r.URL.Path) {
			x.fetched++
			_, _ = w.Write(content)
			return
		}
	}
	http.NotFound(w, r)
}

// run stands in for a sandbox with the resolver, or with a Python that is asked for its
// version or for the modules that it has.
func (x *Index) run(_ context.Context, c packages.Command) (packages.Output, error) {
	if c.Input == nil {
		if strings.Contains(c.Args[len(c.Args)-1], "version_info") {
			return packages.Output{Stdout: []byte("3.13.1\n")}, nil
		}
		return packages.Output{}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.resolved++
	lock := bytes.NewBufferString("lock-version = \"1.0\"\ncreated-by = \"test\"\n")
	for _, which := range slices.Sorted(maps.Keys(x.wheels)) {
		name, version, _ := strings.Cut(which, " ")
		content := x.wheels[which]
		fmt.Fprintf(lock, "[[packages]]\nname = %q\nversion = %q\nwheels = [{ url = %q, size = %d, hashes = { sha256 = \"%x\" } }]\n",
			name, version, x.URL+"/files/"+fileName(which), len(content), sha256.Sum256(content))
	}
	return packages.Output{Stdout: lock.Bytes()}, nil
}

// fileName is the name of a wheel's file.
func fileName(which string) string {
	name, version, _ := strings.Cut(which, " ")
	return strings.ReplaceAll(name, "-", "_") + "-" + version + "-py3-none-any.whl"
}

// wheel returns the bytes of a wheel.
func wheel(t testing.TB, name, version string, files map[string]string) []byte {
	t.Helper()
	info := strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/"
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all[info+"METADATA"] = "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	record := bytes.NewBufferString(info + "RECORD,,\n")
	for _, file := range slices.Sorted(maps.Keys(all)) {
		sum := sha256.Sum256([]byte(all[file]))
		fmt.Fprintf(record, "%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[file]))
	}
	all[info+"RECORD"] = record.String()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(all[file]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
