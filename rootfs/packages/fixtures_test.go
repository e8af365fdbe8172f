package packages

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A wheelFile is one of a wheel.
type wheelFile struct {
	name, content string
	mode          fs.FileMode // 0 is a regular file
	unlisted      bool        // RECORD does not have it
	badHash       bool
	recordName    string // in place of the name, in RECORD
}

// makeWheel returns the bytes of NAME-1.0-py3-none-any.whl with these files.
func makeWheel(t testing.TB, name string, files ...wheelFile) []byte {
	t.Helper()
	info := name + "-1.0.dist-info/"
	files = append(files, wheelFile{name: info + "METADATA", content: "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"})
	var b, record bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(f wheelFile) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.mode != 0 {
			h.SetMode(f.mode)
		} else {
			h.SetMode(0o644)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		add(f)
		sum := sha256.Sum256([]byte(f.content))
		if f.badHash {
			sum[0]++
		}
		if !f.unlisted && !strings.HasSuffix(f.name, "/") {
			fmt.Fprintf(&record, "%s,sha256=%s,%d\n", cmp.Or(f.recordName, f.name), base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
		}
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	add(wheelFile{name: info + "RECORD", content: record.String()})
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A fakeIndex serves wheels, and stands in for uv: every request gets all of them.
type fakeIndex struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	wheels map[string][]byte // by the file's name
	answer func(w http.ResponseWriter, r *http.Request) bool
	hosts  map[string]string // the address of a file, if it is another
	hashes map[string]string
	solved int
	asked  int
	stderr string
	task   map[string]any // what the last resolver was given
}

func newIndex(t *testing.T, wheels map[string][]byte) *fakeIndex {
	x := &fakeIndex{t: t, wheels: wheels, hosts: map[string]string{}, hashes: map[string]string{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		x.asked++
		answer, wheel := x.answer, x.wheels[filepath.Base(r.URL.Path)]
		x.mu.Unlock()
		switch {
		case answer != nil && answer(w, r):
		case wheel == nil:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(wheel)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// run stands in for a sandbox with uv.
func (x *fakeIndex) run(_ context.Context, c Command) (Output, error) {
	switch {
	case c.Input != nil:
	case slices.Contains(c.Args, conflictsScript):
		return Output{Stdout: []byte("pandas\nmpl_toolkits\n../evil\n")}, nil
	default:
		return Output{Stdout: []byte("3.13.1\n")}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.solved++
	if err := json.Unmarshal(c.Input("http://127.0.0.1:1", []byte("PEM")), &x.task); err != nil {
		x.t.Error(err)
	}
	if x.stderr != "" {
		return Output{Code: 1, Stderr: []byte(x.stderr)}, nil
	}
	return Output{Stdout: x.lock()}, nil
}

func (x *fakeIndex) lock() []byte {
	var b bytes.Buffer
	b.WriteString("lock-version = \"1.0\"\ncreated-by = \"test\"\n")
	var names []string
	for file := range x.wheels {
		names = append(names, file)
	}
	slices.Sort(names)
	for _, file := range names {
		name, _, _ := strings.Cut(file, "-")
		address, hash := x.URL+"/files/"+file, sha(x.wheels[file])
		if other := x.hosts[file]; other != "" {
			address = other
		}
		if other := x.hashes[file]; other != "" {
			hash = other
		}
		fmt.Fprintf(&b, "[[packages]]\nname = %q\nversion = \"1.0\"\nwheels = [{ url = %q, size = %d, hashes = { sha256 = %q } }]\n", name, address, len(x.wheels[file]), hash)
	}
	return b.Bytes()
}

func (x *fakeIndex) request(requirements ...string) Request {
	return Request{
		Image: Image{ID: "sha256-0123", Python: "/usr/bin/python3"}, Run: x.run, Requirements: requirements, Index: x.URL + "/simple",
		MaxBytes: 1 << 20, MaxCount: 20, MaxTime: time.Minute,
		Check: func(string, string) error { return nil },
	}
}

// newStore opens a store whose uv is there.
func newStore(t *testing.T) *Store {
	t.Helper()
	// A name that is a pattern too, and would match another folder.
	return openStore(t, filepath.Join(t.TempDir(), "packages [1]"))
}

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s := Open(dir, "/bin/true")
	s.client.Pause, s.client.Stall = time.Millisecond, 10*time.Second
	t.Cleanup(func() { s.Close() })
	return s
}

// tree lists the files below a folder.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// count returns how many requests there were.
func (x *fakeIndex) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// answers sets what answers requests before the wheels do.
func (x *fakeIndex) answers(f func(w http.ResponseWriter, r *http.Request) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = f
}
