package unpack_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

func TestBounds(t *testing.T) {
	top := boundtest.Dir(t)
	boundtest.Run(t, boundtest.Parser{
		Row:    "files of a layer",
		Shapes: boundtest.Tar(),
		Read: func(ctx context.Context, r io.Reader) (err error) {
			dir, err := os.MkdirTemp(top, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rootdir.RemoveAll(dir)) }()
			layer, to := filepath.Join(dir, "layer"), filepath.Join(dir, "root")
			if err := errors.Join(os.Mkdir(layer, 0o700), os.Mkdir(to, 0o700)); err != nil {
				return err
			}
			b := unpack.NewBudget(64<<20, 1000)
			if _, err := unpack.Extract(layer, &cancelReader{ctx, r}, b); err != nil && ctx.Err() != nil {
				return err
			} // what is there of a broken one is merged all the same
			root, err := os.OpenRoot(to)
			if err != nil {
				return err
			}
			defer root.Close()
			m := unpack.NewMerger(root, b)
			return errors.Join(m.Merge(ctx, layer), m.SetDirModes(ctx))
		},
	})
}

// A cancelReader ends with its context, as that of package rootfs.
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
