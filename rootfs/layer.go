package rootfs

import (
	"archive/tar"
	"bufio"
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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/images"
)

// A layer lies in the store once, however many images have it, under the digest
// of its uncompressed tar:
//
//	layers/sha256-…/layer.json   what it is; its presence says that it is complete
//	layers/sha256-…/entries      the entries of its tar, in order
//	layers/sha256-…/files/N/N    the contents of its regular files, by number
//
// No name out of the tar is a name here, so nothing that an image says leads
// anywhere. Names come to life when the layers are merged into a root, which
// links the contents into their places (merge.go).

// layerFormat is the version of a layer's folder. Those of another one are
// unpacked anew.
const layerFormat = 1

// layerRecord is layer.json.
type layerRecord struct {
	Format  int    `json:"format"`
	DiffID  string `json:"diffID"`
	Size    int64  `json:"size"` // bytes on disk, of contents and entries
	Entries int    `json:"entries"`
}

func (s *Store) layerDir(diffID string) string {
	return filepath.Join(s.dir, layersFolder, dirName(diffID))
}

func entriesFile(layerDir string) string { return filepath.Join(layerDir, "entries") }

// filesPerFolder keeps the folders of contents small.
const filesPerFolder = 4096

// contentFile is where content n of a layer is.
func contentFile(layerDir string, n int) string {
	return filepath.Join(layerDir, "files", strconv.Itoa(n/filesPerFolder), strconv.Itoa(n))
}

// loadLayer returns the record of a complete layer, or nil.
func (s *Store) loadLayer(diffID string) *layerRecord {
	var rec layerRecord
	err := readJSON(filepath.Join(s.layerDir(diffID), "layer.json"), &rec)
	if err != nil || rec.Format != layerFormat || rec.DiffID != diffID {
		return nil
	}
	return &rec
}

// ensureLayer unpacks a layer into the store unless it is there.
func (s *Store) ensureLayer(ctx context.Context, l v1.Layer, b *budget, read func(n int)) (*layerRecord, error) {
	hash, err := l.DiffID()
	if err != nil {
		return nil, err
	}
	diffID := hash.String()
	if rec := s.loadLayer(diffID); rec != nil {
		return rec, b.layer(rec)
	}
	unlock, err := s.lock(ctx, layerLock(dirName(diffID)), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if rec := s.loadLayer(diffID); rec != nil {
		return rec, b.layer(rec)
	}
	rec := &layerRecord{Format: layerFormat, DiffID: diffID}
	return rec, s.aside(layersFolder, dirName(diffID), func(dir string) error {
		r, err := images.Open(l, read)
		if err != nil {
			return err
		}
		defer r.Close()
		if err := rec.unpack(dir, &cancelReader{ctx, r}, b); err != nil {
			return err
		}
		return writeJSON(filepath.Join(dir, "layer.json"), rec)
	})
}

// unpack fills an empty folder with a layer. It reads to the very end, where
// the reader says whether the digests were right.
func (rec *layerRecord) unpack(dir string, layer io.Reader, b *budget) (err error) {
	index, err := os.OpenFile(entriesFile(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	out := bufio.NewWriterSize(index, 64<<10)
	w := &layerWriter{layerRecord: rec, dir: dir, budget: b, sum: sha256.New(), buf: make([]byte, 256<<10)}
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
			return fmt.Errorf("unpacking %s: %w", short(hdr.Name), err)
		}
	}
	if _, err := io.Copy(io.Discard, layer); err != nil {
		return err
	}
	return out.Flush()
}

// A layerWriter puts the entries of one tar into a layer's folder.
type layerWriter struct {
	*layerRecord
	dir    string
	budget *budget
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
func (w *layerWriter) file(e *layerEntry, size int64, content io.Reader) (err error) {
	if err := w.budget.file(size); err != nil {
		return err
	}
	w.files++
	w.Size += size
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
	return setFile(f, e)
}

// setFile gives a content the mode and the time of its entry. All its names
// will share them, as they share the file.
func setFile(f *os.File, e *layerEntry) error {
	if err := f.Chmod(e.Mode); err != nil {
		return err
	}
	return os.Chtimes(f.Name(), e.Time, e.Time)
}

// cancelReader ends with its context also where the bytes come from a file.
type cancelReader struct {
	ctx   context.Context
	inner io.Reader
}

func (c *cancelReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.inner.Read(p)
}
