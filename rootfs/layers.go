package rootfs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"golang.org/x/sys/unix"
)

// A layer is in layers/sha256-…, under the digest of its uncompressed tar, as
// package unpack writes it.

// layerFormat is the version of a layer's folder. Those of another one are
// unpacked anew.
const layerFormat = 1

// layerRecord is layer.json in a layer's folder. Its presence says that the layer is
// complete.
type layerRecord struct {
	Format  int    `json:"format"`
	DiffID  string `json:"diffID"`
	Size    int64  `json:"size"` // bytes on disk
	Entries int    `json:"entries"`
}

func (r *layerRecord) usage() unpack.Usage { return unpack.Usage{Bytes: r.Size, Entries: r.Entries} }

func (s *Store) layerDir(diffID string) string {
	return filepath.Join(s.dir, layersFolder, dirName(diffID))
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
func (s *Store) ensureLayer(ctx context.Context, l v1.Layer, b *unpack.Budget, read func(n int)) (*layerRecord, error) {
	hash, err := l.DiffID()
	if err != nil {
		return nil, err
	}
	diffID := hash.String()
	if rec := s.loadLayer(diffID); rec != nil {
		return rec, b.Spend(rec.usage())
	}
	unlock, err := s.locks.wait(ctx, layerLock(dirName(diffID)), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if rec := s.loadLayer(diffID); rec != nil {
		return rec, b.Spend(rec.usage())
	}
	rec := &layerRecord{Format: layerFormat, DiffID: diffID}
	return rec, s.buildAtomic(layersFolder, dirName(diffID), func(dir string) error {
		r, err := images.Open(l, read)
		if err != nil {
			return err
		}
		defer r.Close()
		used, err := unpack.Extract(dir, &cancelReader{ctx, r}, b)
		if err != nil {
			return err
		}
		rec.Size, rec.Entries = used.Bytes, used.Entries
		return writeJSON(filepath.Join(dir, "layer.json"), rec)
	})
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
