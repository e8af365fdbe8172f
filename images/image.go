package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A found is an image whose manifest was read and whose configuration was not.
type found struct {
	*document
	blobs blobs
}

// An image is one whose manifest and configuration were read, once each, and belong
// together. The library's own images decode both again for each question.
type image struct {
	blobs    blobs
	raw      []byte // of the manifest
	manifest *v1.Manifest
	config   *v1.ConfigFile
	// configFile is the configuration's name among the blobs.
	configFile string
	layers     []v1.Layer
}

// newImage reads the configuration of an image, and checks that it fits the manifest and
// the platform.
func newImage(ctx context.Context, f *found, want v1.Platform) (*image, error) {
	m := &v1.Manifest{MediaType: f.mediaType, Config: f.config, Layers: f.layers}
	if kind := artifactKind(f.document); kind != "" {
		return nil, fmt.Errorf("it is an artifact of the type %s, not an image", foreign(kind, 200))
	}
	switch {
	case len(m.Layers) == 0:
		return nil, errors.New("the image has no layers")
	case m.Config.Size < 0 || m.Config.Size > maxConfig:
		return nil, fmt.Errorf("the image's configuration has %d bytes, beyond the limit of %d", m.Config.Size, maxConfig)
	}
	for _, l := range m.Layers {
		if l.Size < 0 { // which the library would take for "any size"
			return nil, fmt.Errorf("layer %s has the size %d", l.Digest, l.Size)
		}
	}
	config, err := verifiedConfig(ctx, f.blobs, m.Config)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if len(config.RootFS.DiffIDs) != len(m.Layers) {
		return nil, layersDiffer(len(m.Layers), config)
	}
	i := &image{blobs: f.blobs, raw: f.raw, manifest: m, config: config, configFile: blobName(m.Config.Digest)}
	for n, d := range m.Layers {
		i.layers = append(i.layers, &layer{d, config.RootFS.DiffIDs[n], d.Size, func() (io.ReadCloser, error) { return f.blobs.open(blobName(d.Digest)) }})
	}
	return i, checkPlatform(config, want)
}

func layersDiffer(layers int, config *v1.ConfigFile) error {
	return fmt.Errorf("the image has %d layers but its configuration names %d", layers, len(config.RootFS.DiffIDs))
}

// verifiedConfig reads a configuration as it comes, and then to its end: if it is not what
// its digest says, that is what is wrong.
func verifiedConfig(ctx context.Context, b blobs, d v1.Descriptor) (*v1.ConfigFile, error) {
	rc, err := b.open(blobName(d.Digest))
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	v, err := newVerifier(rc, d.Digest, d.Size)
	if err != nil {
		return nil, err
	}
	in := &contextReader{ctx: ctx, inner: v}
	config, err := readConfig(in)
	if _, restErr := io.Copy(io.Discard, in); restErr != nil {
		return nil, restErr
	}
	return config, err
}

// artifactKind returns what a manifest is for if not for an image: registries also
// keep charts, signatures and models (OCI image-spec, manifest.md, "Guidelines for
// Artifact Usage"). Old tools write images whose configuration has another type, or
// none.
func artifactKind(d *document) string {
	switch kind := d.config.MediaType; {
	case d.mediaType != "" && !d.mediaType.IsImage():
		return string(d.mediaType)
	case kind == "" || kind.IsConfig() || kind == "application/octet-stream":
		return ""
	case d.artifact != "":
		return d.artifact
	default:
		return string(kind)
	}
}

func (i *image) Layers() ([]v1.Layer, error)               { return i.layers, nil }
func (i *image) MediaType() (types.MediaType, error)       { return i.manifest.MediaType, nil }
func (i *image) Size() (int64, error)                      { return int64(len(i.raw)), nil }
func (i *image) ConfigName() (v1.Hash, error)              { return i.manifest.Config.Digest, nil }
func (i *image) ConfigFile() (*v1.ConfigFile, error)       { return i.config, nil }
func (i *image) Manifest() (*v1.Manifest, error)           { return i.manifest, nil }
func (i *image) RawManifest() ([]byte, error)              { return i.raw, nil }
func (i *image) LayerByDigest(h v1.Hash) (v1.Layer, error) { return i.find(h, v1.Layer.Digest) }
func (i *image) LayerByDiffID(h v1.Hash) (v1.Layer, error) { return i.find(h, v1.Layer.DiffID) }

func (i *image) Digest() (v1.Hash, error) {
	sum := sha256.Sum256(i.raw)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}, nil
}

// RawConfigFile reads the configuration again: toolcell itself needs none of the rest.
func (i *image) RawConfigFile() ([]byte, error) {
	raw, err := readFile(i.blobs, i.configFile, maxConfig)
	if err != nil {
		return nil, err
	}
	return raw, verifyBytes(raw, i.manifest.Config.Digest)
}

func (i *image) find(h v1.Hash, name func(v1.Layer) (v1.Hash, error)) (v1.Layer, error) {
	for _, l := range i.layers {
		if got, err := name(l); err == nil && got == h {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no layer %s in the image", h)
}

// A layer is one of an image.
type layer struct {
	desc   v1.Descriptor
	diffID v1.Hash // as the configuration says
	size   int64   // compressed; -1 if it is not known
	open   func() (io.ReadCloser, error)
}

func (l *layer) Digest() (v1.Hash, error)             { return l.desc.Digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.diffID, nil }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return l.desc.MediaType, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return OpenLayer(context.Background(), l, nil) }

// A contextReader ends with its context also where the bytes come from a file, and stays
// at its first error.
type contextReader struct {
	ctx   context.Context
	inner io.Reader
	err   error
}

func (c *contextReader) Read(p []byte) (n int, err error) {
	switch {
	case c.err != nil:
		return 0, c.err
	case c.ctx.Err() != nil:
		return 0, context.Cause(c.ctx)
	}
	n, c.err = c.inner.Read(p)
	return n, c.err
}
