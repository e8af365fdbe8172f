package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

// A layerDir has a folder for each layer, under the digest of its uncompressed tar:
// the files of package unpack, and layer.json.
type layerDir struct {
	dir   string
	cache *cachedir.Cache
}

// layerFormat is the version of a layer's folder. Layers of other versions are unpacked
// again.
const layerFormat = 1

// layerRecord is layer.json. A layer that has it is complete.
type layerRecord struct {
	Format  int    `json:"format"`
	DiffID  string `json:"diffID"`
	Size    int64  `json:"size"` // bytes on disk
	Entries int    `json:"entries"`
}

func (r *layerRecord) usage() unpack.Usage { return unpack.Usage{Bytes: r.Size, Entries: r.Entries} }

func layerRecordFile(layerDir string) string { return filepath.Join(layerDir, "layer.json") }

func (d layerDir) path(diffID string) string { return filepath.Join(d.dir, dirName(diffID)) }

// load returns the record of a complete layer, or nil.
func (d layerDir) load(diffID string) *layerRecord {
	var rec layerRecord
	err := cachedir.ReadJSON(layerRecordFile(d.path(diffID)), &rec)
	if err != nil || rec.Format != layerFormat || rec.DiffID != diffID {
		return nil
	}
	return &rec
}

// ensure extracts a layer that is missing, or again; the old one stays until then. It calls
// read for the compressed bytes as they arrive.
func (d layerDir) ensure(ctx context.Context, l *images.Layer, b *unpack.Budget, again bool, read func(n int)) (*layerRecord, error) {
	diffID := l.DiffID.String()
	if rec := d.load(diffID); rec != nil && !again {
		return rec, b.Spend(rec.usage())
	}
	unlock, err := d.cache.Wait(ctx, layerLock(dirName(diffID)), state.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if rec := d.load(diffID); rec != nil && !again {
		return rec, b.Spend(rec.usage())
	}
	return d.extract(ctx, l, diffID, b, read)
}

// extract makes the folder of a layer. The caller has the lock.
func (d layerDir) extract(ctx context.Context, l *images.Layer, diffID string, b *unpack.Budget, read func(n int)) (*layerRecord, error) {
	rec := &layerRecord{Format: layerFormat, DiffID: diffID}
	return rec, cachedir.Build(d.dir, dirName(diffID), func(dir string) error {
		r, err := l.Open(ctx, read)
		if err != nil {
			return err
		}
		defer r.Close()
		used, err := unpack.Extract(dir, &cachedir.ContextReader{Context: ctx, Inner: r}, b)
		if err != nil {
			return err
		}
		rec.Size, rec.Entries = used.Bytes, used.Entries
		return cachedir.WriteJSON(layerRecordFile(dir), rec)
	})
}

// removeUnusedLayers removes the layers that no image has, unless a pull is in progress. It
// returns their size in bytes.
func (s *Store) removeUnusedLayers() (freed int64, err error) {
	unlock, err := s.cache.IfFree(pullsLock)
	if unlock == nil {
		return 0, err
	}
	defer unlock()
	keep, err := s.images.layers()
	if err != nil {
		return 0, err
	}
	layers, err := os.ReadDir(s.layers.dir)
	for _, l := range layers {
		if keep[l.Name()] || strings.HasPrefix(l.Name(), cachedir.TempPrefix) {
			continue
		}
		dir := filepath.Join(s.layers.dir, l.Name())
		var rec layerRecord
		if cachedir.ReadJSON(layerRecordFile(dir), &rec) == nil {
			freed += rec.Size
		}
		err = errors.Join(err, cachedir.Remove(dir, "layer.json"))
	}
	return freed, err
}

// verify compares the contents of a layer with their recorded digests.
func (d layerDir) verify(ctx context.Context, diffID string, damage *damageList) error {
	if d.load(diffID) == nil {
		damage.add("layer %s is gone", diffID)
		return nil
	}
	err := unpack.Verify(ctx, d.path(diffID), func(name string, problem error) { damage.add("%s: %v", rootdir.Quote(name), problem) })
	if err != nil && ctx.Err() == nil {
		damage.add("layer %s: %v", diffID, err)
		return nil
	}
	return err
}
