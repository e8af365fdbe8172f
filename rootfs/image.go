package rootfs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/runcell/runcell/images"
)

// maxEnv is what a process can be given as its environment at the least.
const maxEnv = 128 << 10

// unpackImage fills an empty directory with an image and makes it ready to be
// the root of a sandbox.
func (s *Store) unpackImage(ctx context.Context, dir string, img v1.Image, ref string, progress func(Progress)) (*record, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	env := config.Config.Env
	if n := len(strings.Join(env, "")); n > maxEnv {
		return nil, fmt.Errorf("the image's environment has %d bytes, more than the limit of %d", n, maxEnv)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	u := newUnpacker(root, s.MaxBytes, s.MaxEntries)
	if err := u.unpackLayers(ctx, img, newMeter(img, ref, progress)); err != nil {
		return nil, err
	}
	if err := u.finish(); err != nil {
		return nil, err
	}
	if err := makeMountPoints(root); err != nil {
		return nil, err
	}
	python, err := findPython(root, env)
	if err != nil {
		return nil, err
	}
	return &record{Size: u.budget.bytes, Env: env, Python: python}, nil
}

func (u *unpacker) unpackLayers(ctx context.Context, img v1.Image, m *meter) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for n, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		m.layer(n, len(layers))
		err = u.unpackLayer(ctx, layer, m)
		if ctx.Err() != nil {
			return context.Cause(ctx) // whatever it has broken on its way
		}
		if err != nil {
			return fmt.Errorf("layer %s: %w", digest, err)
		}
	}
	m.flush()
	return nil
}

func (u *unpacker) unpackLayer(ctx context.Context, layer v1.Layer, m *meter) error {
	r, err := images.Open(layer, m.read)
	if err != nil {
		return err
	}
	defer r.Close()
	return u.unpack(&cancelReader{ctx, r})
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

// meterStep is how many bytes come between two reports.
const meterStep = 512 << 10

// meter turns bytes read into reports of progress.
type meter struct {
	ref      string
	report   func(Progress)
	progress Progress
	reported int64
}

func newMeter(img v1.Image, ref string, report func(Progress)) *meter {
	m := &meter{ref: ref, report: report}
	if manifest, err := img.Manifest(); err == nil {
		for _, l := range manifest.Layers {
			m.progress.Total += l.Size
		}
	}
	return m
}

func (m *meter) layer(n, of int) {
	m.progress.Text = fmt.Sprintf("pulling %s: layer %d of %d", m.ref, n+1, of)
	m.flush()
}

func (m *meter) read(n int) {
	m.progress.Done += int64(n)
	if m.progress.Done-m.reported >= meterStep {
		m.flush()
	}
}

func (m *meter) flush() {
	m.reported = m.progress.Done
	p := m.progress
	if p.Total > 0 {
		p.Done = min(p.Done, p.Total) // a compressed layer of a docker archive counts unpacked
	}
	report(m.report, p)
}
