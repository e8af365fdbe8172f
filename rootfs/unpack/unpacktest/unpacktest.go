// Package unpacktest makes layers for tests, and directories out of them.
package unpacktest

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack"
)

// An Entry is one entry of a layer's tar.
type Entry struct {
	tar.Header
	Body string
}

// File is a file that everybody may read.
func File(name, body string) Entry {
	return Entry{tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}, body}
}

// Program is a file that can be executed.
func Program(name string) Entry {
	return WithMode(File(name, "#!/bin/sh\n"), 0o755)
}

// Dir is a directory that everybody may enter.
func Dir(name string) Entry {
	return Entry{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}

// Symlink is a symbolic link.
func Symlink(name, target string) Entry {
	return Entry{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}
}

// Hardlink is another name of a file.
func Hardlink(name, target string) Entry {
	return Entry{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

// Special is an entry of another type of package tar, such as a device.
func Special(name string, kind byte) Entry {
	return Entry{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: 1, Devminor: 3}
}

// WithMode returns the entry with other permissions.
func WithMode(e Entry, mode int64) Entry {
	e.Mode = mode
	return e
}

// Tar returns a tar of the entries.
func Tar(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if _, err := io.WriteString(w, e.Body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Unpack unpacks a layer into a folder of its own and merges it.
func Unpack(t testing.TB, m *unpack.Merger, b *unpack.Budget, layer io.Reader) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack.Extract(dir, layer, b); err != nil {
		return err
	}
	return m.Merge(t.Context(), dir)
}

// Root returns a new directory with the entries in it.
func Root(t *testing.T, entries ...Entry) *os.Root {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	b := unpack.NewBudget(1<<20, 1000)
	m := unpack.NewMerger(root, b)
	if err := Unpack(t, m, b, bytes.NewReader(Tar(t, entries...))); err != nil {
		t.Fatal(err)
	}
	if err := m.SetDirModes(t.Context()); err != nil {
		t.Fatal(err)
	}
	return root
}

// List lists a directory: "name" of a directory ends in "/", a symlink shows its
// target, a file its content.
func List(t *testing.T, root string) string {
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
