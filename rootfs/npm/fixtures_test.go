package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var linux = Platform{"linux", "x64", "glibc"}

// A tarEntry is one of a tarball. The zero kind is a file.
type tarEntry struct {
	name, content string
	kind          byte
	mode          int64
}

// pack returns a tarball.
func pack(t testing.TB, entries ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		hdr := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: max(e.mode, 0o600)}
		switch e.kind {
		case 0:
			hdr.Typeflag, hdr.Size = tar.TypeReg, int64(len(e.content))
		case tar.TypeSymlink, tar.TypeLink:
			hdr.Linkname = e.content
		case tar.TypeXGlobalHeader:
			hdr = &tar.Header{Typeflag: e.kind, PAXRecords: map[string]string{"comment": "c"}}
		}
		err := w.WriteHeader(hdr)
		if err == nil && hdr.Typeflag == tar.TypeReg {
			_, err = w.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packageOf returns the tarball of a package with some more entries.
func packageOf(t testing.TB, name, version string, entries ...tarEntry) []byte {
	t.Helper()
	manifest := fmt.Sprintf(`{"name":%q,"version":%q,"bin":"cli.js"}`, name, version)
	return pack(t, slices.Concat([]tarEntry{{name: "package/package.json", content: manifest}, {name: "package/cli.js", content: "#!/usr/bin/env node\nconsole.log('" + name + "')\n", mode: 0o755}}, entries)...)
}

func integrity(tarball []byte) string {
	sum := sha512.Sum512(tarball)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A fakeRegistry serves tarballs.
type fakeRegistry struct {
	*httptest.Server
	mu       sync.Mutex
	tarballs map[string][]byte // by path
	asked    int
	answer   func(w http.ResponseWriter, r *http.Request) bool
}

func newRegistry(t *testing.T) *fakeRegistry {
	x := &fakeRegistry{tarballs: map[string][]byte{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		x.asked++
		answer, tarball := x.answer, x.tarballs[r.URL.Path]
		x.mu.Unlock()
		switch {
		case answer != nil && answer(w, r):
		case tarball == nil:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(tarball)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// count returns how many requests there were.
func (x *fakeRegistry) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// add serves a tarball, and returns its entry in a lock.
func (x *fakeRegistry) add(name, version string, tarball []byte) map[string]any {
	x.mu.Lock()
	defer x.mu.Unlock()
	path := fmt.Sprintf("/%s/-/%s-%s.tgz", name, name[strings.LastIndex(name, "/")+1:], version)
	x.tarballs[path] = tarball
	return map[string]any{"version": version, "resolved": x.URL + path, "integrity": integrity(tarball)}
}

// lockOf returns a lock with these entries, which is for all that are inside no other.
func lockOf(t testing.TB, entries map[string]map[string]any) []byte {
	t.Helper()
	wanted, all := map[string]string{}, map[string]any{}
	for path, entry := range entries {
		all[path] = entry
		if name := strings.TrimPrefix(path, "node_modules/"); !strings.Contains(name, "node_modules/") && entry["optional"] == nil {
			wanted[name] = "latest"
		}
	}
	all[""] = map[string]any{"dependencies": wanted}
	text, err := json.Marshal(map[string]any{"name": "x", "lockfileVersion": 3, "requires": true, "packages": all})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// oneOf returns the request for a lock of one package.
func (x *fakeRegistry) oneOf(t *testing.T, name string, tarball []byte) Request {
	t.Helper()
	return x.request(lockOf(t, map[string]map[string]any{"node_modules/" + name: x.add(name, "1.0.0", tarball)}))
}

func (x *fakeRegistry) request(lock []byte) Request {
	return Request{
		Registry: x.URL, Platform: linux, Lock: lock, MaxBytes: 1 << 20, MaxCount: 20, MaxTime: time.Minute,
		Check: func(string, string) error { return nil },
	}
}

func newStore(t *testing.T) *Store {
	t.Helper()
	// A name that is a pattern too, and would match another folder.
	return openStore(t, filepath.Join(t.TempDir(), "npm [1]"))
}

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s := Open(dir)
	s.client.Pause, s.client.Stall = time.Millisecond, 10*time.Second
	t.Cleanup(func() { s.Close() })
	return s
}

// with returns an entry with other members.
func with(entry map[string]any, more map[string]any) map[string]any {
	entry = maps.Clone(entry)
	maps.Copy(entry, more)
	return entry
}
