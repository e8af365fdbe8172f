package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/rootfs/python"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"golang.org/x/sync/errgroup"
)

// maxEnv is the size of an environment that every Linux accepts.
const maxEnv = 128 << 10

// unpackImage fills an empty directory with an image and prepares it as the root of a
// sandbox.
func unpackImage(ctx context.Context, dir string, img *images.Image, store layerDir, b *unpack.Budget, meter *meter) (*record, error) {
	if n := len(strings.Join(img.Env, "")); n > maxEnv {
		return nil, fmt.Errorf("the image's environment has %d bytes, more than the limit of %d", n, maxEnv)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	m := unpack.NewMerger(root, b)
	records, err := mergeLayers(ctx, m, img.Layers, store, b, meter)
	if err != nil {
		return nil, err
	}
	if err := finishRoot(ctx, m, root); err != nil {
		return nil, err
	}
	python, err := python.Find(ctx, root, img.Env)
	if err != nil {
		return nil, err
	}
	spare := b.SpareEntries()
	rec := &record{Platform: img.Platform, Env: img.Env, Python: python, Spare: &spare}
	for _, l := range records {
		rec.Layers = append(rec.Layers, Layer{l.DiffID, l.Size})
	}
	return rec, nil
}

// mergeStored builds the root of an image whose layers are all in the store.
func mergeStored(ctx context.Context, dir string, layers []Layer, store layerDir, b *unpack.Budget) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	m := unpack.NewMerger(root, b)
	for _, l := range layers {
		if err = m.Merge(ctx, store.path(l.DiffID)); err != nil {
			break
		}
	}
	if err == nil {
		err = finishRoot(ctx, m, root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// layersAtOnce is how many layers of an image are fetched and unpacked concurrently. Each
// takes some megabytes for buffers and the window of its compression.
const layersAtOnce = 3

// mergeLayers fetches all layers into the store, some at a time, and merges each as soon as
// it and those below it are complete.
func mergeLayers(ctx context.Context, m *unpack.Merger, layers []*images.Layer, store layerDir, b *unpack.Budget, meter *meter) ([]*layerRecord, error) {
	done := make([]chan struct{}, len(layers))
	for i := range done {
		done[i] = make(chan struct{})
	}
	records := make([]*layerRecord, len(layers))
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		defer contain.Error("unpacking an image", &err)
		unpacking, inner := errgroup.WithContext(inner)
		unpacking.SetLimit(layersAtOnce)
		for i, l := range layers {
			unpacking.Go(func() (err error) {
				defer contain.Error("unpacking a layer", &err)
				records[i], err = ensureLayer(inner, l, store, b, meter.layer(i))
				if err == nil {
					close(done[i])
				}
				return err
			})
			if inner.Err() != nil {
				break
			}
		}
		return unpacking.Wait()
	})
	group.Go(func() (err error) {
		defer contain.Error("merging the layers of an image", &err)
		for i := range layers {
			select {
			case <-done[i]:
			case <-inner.Done():
				return context.Cause(inner)
			}
			if err := m.Merge(inner, store.path(records[i].DiffID)); err != nil {
				return fmt.Errorf("layer %s: %w", records[i].DiffID, err)
			}
		}
		return nil
	})
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // other errors follow from it
	}
	return records, err
}

func ensureLayer(ctx context.Context, l *images.Layer, store layerDir, b *unpack.Budget, meter *layerMeter) (*layerRecord, error) {
	release, err := memory.Fetch(ctx, memory.Layer)
	if err != nil {
		return nil, err
	}
	defer release()
	rec, err := store.ensure(ctx, l, b, false, meter.addBytes)
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", l.Digest, err)
	}
	meter.layerDone()
	return rec, nil
}
