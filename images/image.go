package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A found is an image whose manifest alone has been read.
type found struct {
	*document
	blobs blobs
}

// An Image is an image whose manifest and configuration were read and fit each other.
type Image struct {
	Digest   string   // of the manifest
	Platform string   // that it was built for, "" if it does not say
	Env      []string // of its configuration
	Layers   []*Layer // lowest first
}

// A Layer is a layer of an image. Open reads it.
type Layer struct {
	Digest v1.Hash // of the compressed bytes
	DiffID v1.Hash // of the uncompressed ones, as the configuration says
	Size   int64   // of the compressed bytes

	blobs blobs
	file  string
	// undigested says that Digest is not the file's: archives of docker save have only
	// uncompressed digests, and some tools compress the layers in them.
	undigested bool
}

// newImage reads the configuration of an image and checks that it fits the manifest and
// the platform.
func newImage(ctx context.Context, f *found, want v1.Platform) (*Image, error) {
	if kind := artifactKind(f.document); kind != "" {
		return nil, fmt.Errorf("it is an artifact of the type %s, not an image", printable(kind, 200))
	}
	switch {
	case len(f.Layers) == 0:
		return nil, errors.New("the image has no layers")
	case f.Config.Size < 0 || f.Config.Size > maxConfig:
		return nil, fmt.Errorf("the image's configuration has %d bytes, beyond the limit of %d", f.Config.Size, maxConfig)
	}
	for _, l := range f.Layers {
		if l.Size < 0 { // which the library would take for "any size"
			return nil, fmt.Errorf("layer %s has the size %d", l.Digest.hash, l.Size)
		}
	}
	config, err := verifiedConfig(ctx, f.blobs, f.Config.Digest.hash, f.Config.Size)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if len(config.RootFS.DiffIDs) != len(f.Layers) {
		return nil, layersDiffer(len(f.Layers), config)
	}
	i := config.describe(f.raw)
	for n, d := range f.Layers {
		i.Layers = append(i.Layers, &Layer{Digest: d.Digest.hash, DiffID: config.RootFS.DiffIDs[n].hash, Size: d.Size, blobs: f.blobs, file: blobName(d.Digest.hash)})
	}
	return i, checkPlatform(config, want)
}

// describe returns an image with this configuration and manifest, without its layers.
func (c *imageConfig) describe(manifest []byte) *Image {
	return &Image{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(manifest)), Platform: c.platform.String(), Env: c.Config.Env}
}

func layersDiffer(layers int, config *imageConfig) error {
	return fmt.Errorf("the image has %d layers but its configuration names %d", layers, len(config.RootFS.DiffIDs))
}

// verifiedConfig reads a configuration as it arrives, and then to its end: a wrong digest
// takes precedence over other errors.
func verifiedConfig(ctx context.Context, b blobs, h v1.Hash, size int64) (*imageConfig, error) {
	rc, err := b.open(blobName(h))
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	v, err := newVerifier(rc, h, size)
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

// artifactKind returns the type of an artifact that is not an image, or "": registries
// also store charts, signatures and models (OCI image-spec, manifest.md, "Guidelines for
// Artifact Usage"). Old tools write images whose configuration has another type, or none.
func artifactKind(d *document) string {
	switch kind := d.Config.MediaType; {
	case d.MediaType != "" && !d.MediaType.IsImage():
		return string(d.MediaType)
	case kind == "" || kind.IsConfig() || kind == "application/octet-stream":
		return ""
	case d.ArtifactType != "":
		return d.ArtifactType
	default:
		return string(kind)
	}
}

// A contextReader ends with its context, even when it reads from a file, and repeats its
// first error.
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
