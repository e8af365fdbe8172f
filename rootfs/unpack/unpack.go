// Package unpack turns the layers of an image into the directory that is the
// root of a sandbox. Whatever an image says, nothing outside that directory
// changes, nothing in it is a device or has setuid, and no image takes more than
// its Budget. It verifies no digests of layers: the reader of a layer does.
//
// A layer is kept once, however many images have it, in a folder of its own:
//
//	entries      the entries of its tar, in order
//	files/N/N    the contents of its regular files, by number
//
// No name out of the tar is a name there, so nothing that an image says leads
// anywhere. Names come to life when the layers are merged into a root, which
// links the contents into their places (merge.go).
package unpack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// Usage is the part of a Budget that a layer uses.
type Usage struct {
	Bytes   int64 // on disk, of contents and entries
	Entries int   // of its tar
}

// entriesFile is the file of a layer's folder that has its entries.
func entriesFile(layerDir string) string { return filepath.Join(layerDir, "entries") }

// filesPerFolder keeps the folders of contents small.
const filesPerFolder = 4096

// contentFile returns the file of content n of a layer.
func contentFile(layerDir string, n int) string {
	return filepath.Join(layerDir, "files", strconv.Itoa(n/filesPerFolder), strconv.Itoa(n))
}

// Extract fills an empty folder with the entries and contents of a layer's tar. It reads to
// the end, where the reader reports whether the digests are right.
func Extract(dir string, layer io.Reader, b *Budget) (used Usage, err error) {
	index, err := os.OpenFile(entriesFile(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Usage{}, err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	out := bufio.NewWriterSize(index, 64<<10)
	w := &layerWriter{dir: dir, budget: b, sum: sha256.New(), buf: make([]byte, 256<<10)}
	w.index = gob.NewEncoder(io.MultiWriter(out, w))
	// A tar consists of contents and headers; this bounds headers, and zeros after the end.
	layer = &limitedReader{layer, b.maxBytes + 4096*int64(b.maxEntries)}
	for r := tar.NewReader(layer); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return w.used, fmt.Errorf("reading tar: %w", err)
		}
		if err := w.addEntry(hdr, r); err != nil {
			return w.used, fmt.Errorf("unpacking %s: %w", rootdir.Quote(hdr.Name), err)
		}
	}
	if _, err := io.Copy(io.Discard, layer); err != nil {
		return w.used, err
	}
	return w.used, out.Flush()
}

// A layerWriter puts the entries of one tar into a layer's folder.
type layerWriter struct {
	used   Usage
	dir    string
	budget *Budget
	index  *gob.Encoder
	files  int
	sum    hash.Hash
	buf    []byte
}

// Write counts the bytes of the index, since names take space too.
func (w *layerWriter) Write(p []byte) (int, error) {
	w.used.Bytes += int64(len(p))
	return len(p), w.budget.spendBytes(int64(len(p)))
}

func (w *layerWriter) addEntry(hdr *tar.Header, content io.Reader) error {
	if err := w.budget.spendEntry(hdr); err != nil {
		return err
	}
	w.used.Entries++
	e, kept, err := newEntry(hdr)
	if err != nil || !kept {
		return err
	}
	if e.Type == tar.TypeReg && !e.isWhiteout() {
		if err := w.writeContent(&e, hdr.Size, content); err != nil {
			return err
		}
	}
	return w.index.Encode(e)
}

// writeContent writes a content and records it in its entry.
func (w *layerWriter) writeContent(e *entry, size int64, content io.Reader) (err error) {
	if err := w.budget.spendBytes(size); err != nil {
		return err
	}
	w.files++
	w.used.Bytes += size
	e.File, e.Size = w.files, size
	name := contentFile(w.dir, e.File)
	if e.File == 1 || e.File%filesPerFolder == 0 {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w.sum.Reset()
	if _, err := io.CopyBuffer(io.MultiWriter(f, w.sum), content, w.buf); err != nil {
		return err
	}
	w.sum.Sum(e.Sum[:0])
	// All names of the content will share its mode and time, as they share the file.
	if err := f.Chmod(e.Mode); err != nil {
		return err
	}
	return os.Chtimes(f.Name(), e.Time, e.Time)
}

// Verify reads the contents of a layer again, and calls damaged for each entry whose content
// has changed since the layer was extracted. It returns an error if it cannot tell.
func Verify(ctx context.Context, layerDir string, damaged func(name string, problem error)) error {
	sum, buf := sha256.New(), make([]byte, 256<<10)
	return readEntries(entriesFile(layerDir), func(e *entry) error {
		if e.File == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.verify(layerDir, sum, buf); err != nil {
			damaged(e.Name, err)
		}
		return nil
	})
}

func (e *entry) verify(layerDir string, sum hash.Hash, buf []byte) error {
	f, err := openContent(contentFile(layerDir, e.File))
	if err != nil {
		return err
	}
	defer f.Close()
	sum.Reset()
	if _, err := io.CopyBuffer(sum, onlyReader{f}, buf); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), e.Sum[:]) {
		return errors.New("its content has changed")
	}
	return nil
}

// onlyReader hides the other methods of a file, so that io.CopyBuffer uses the buffer.
type onlyReader struct{ io.Reader }
