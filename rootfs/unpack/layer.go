package unpack

import (
	"archive/tar"
	"bufio"
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

// A Record says what a layer is, as layer.json.
type Record struct {
	Format  int    `json:"format"`
	DiffID  string `json:"diffID"`
	Size    int64  `json:"size"` // bytes on disk, of contents and entries
	Entries int    `json:"entries"`
}

// EntriesFile is the file of a layer's folder that has its entries.
func EntriesFile(layerDir string) string { return filepath.Join(layerDir, "entries") }

// filesPerFolder keeps the folders of contents small.
const filesPerFolder = 4096

// ContentFile is where content n of a layer is.
func ContentFile(layerDir string, n int) string {
	return filepath.Join(layerDir, "files", strconv.Itoa(n/filesPerFolder), strconv.Itoa(n))
}

// Unpack fills an empty folder with a layer. It reads to the very end, where
// the reader says whether the digests were right.
func (rec *Record) Unpack(dir string, layer io.Reader, b *Budget) (err error) {
	index, err := os.OpenFile(EntriesFile(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	out := bufio.NewWriterSize(index, 64<<10)
	w := &layerWriter{Record: rec, dir: dir, budget: b, sum: sha256.New(), buf: make([]byte, 256<<10)}
	w.index = gob.NewEncoder(io.MultiWriter(out, w))
	// Everything of a tar that is not content is headers; this bounds floods
	// of them, and of zeros after the end.
	layer = &limitedReader{layer, b.maxBytes + 4096*int64(b.maxEntries)}
	for r := tar.NewReader(layer); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading tar: %w", err)
		}
		if err := w.add(hdr, r); err != nil {
			return fmt.Errorf("unpacking %s: %w", rootdir.Quote(hdr.Name), err)
		}
	}
	if _, err := io.Copy(io.Discard, layer); err != nil {
		return err
	}
	return out.Flush()
}

// A layerWriter puts the entries of one tar into a layer's folder.
type layerWriter struct {
	*Record
	dir    string
	budget *Budget
	index  *gob.Encoder
	files  int
	sum    hash.Hash
	buf    []byte
}

// Write counts the bytes of the index: names take room too.
func (w *layerWriter) Write(p []byte) (int, error) {
	w.Size += int64(len(p))
	return len(p), w.budget.file(int64(len(p)))
}

func (w *layerWriter) add(hdr *tar.Header, content io.Reader) error {
	if err := w.budget.entry(hdr); err != nil {
		return err
	}
	w.Entries++
	e, kept, err := newEntry(hdr)
	if err != nil || !kept {
		return err
	}
	if e.Type == tar.TypeReg && !e.whiteout() {
		if err := w.file(&e, hdr.Size, content); err != nil {
			return err
		}
	}
	return w.index.Encode(e)
}

// file writes a content and notes it in its entry.
func (w *layerWriter) file(e *Entry, size int64, content io.Reader) (err error) {
	if err := w.budget.file(size); err != nil {
		return err
	}
	w.files++
	w.Size += size
	e.File, e.Size = w.files, size
	name := ContentFile(w.dir, e.File)
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
	return setFile(f, e)
}

// setFile gives a content the mode and the time of its entry. All its names
// will share them, as they share the file.
func setFile(f *os.File, e *Entry) error {
	if err := f.Chmod(e.Mode); err != nil {
		return err
	}
	return os.Chtimes(f.Name(), e.Time, e.Time)
}
