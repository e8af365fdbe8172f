package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// savedImage is one entry of the manifest.json that `docker save` writes.
type savedImage struct {
	Config   string
	RepoTags names
	Layers   names
}

// names are the names of one image in an archive.
type names []string

func (n *names) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return readList(d, (*[]string)(n), maxArchiveFiles, nil)
}

// savedImages are the images of one archive. The limit on names is for all of them
// together.
type savedImages []savedImage

func (s *savedImages) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	left := maxArchiveFiles
	return readList(d, (*[]savedImage)(s), maxEntries, func(image savedImage) error {
		if left -= len(image.RepoTags) + len(image.Layers); left < 0 {
			return limitError(maxArchiveFiles)
		}
		return nil
	})
}

// fromDockerArchive returns an image of a `docker save` archive: the one with
// the reference, or the only one.
//
// Such an archive has no manifest with digests of layers, but its configuration has their
// uncompressed digests. The image is presented as one of plain tar layers with these
// digests, so that its layers need not be read first.
func fromDockerArchive(ctx context.Context, file, ref string, limit int64, want v1.Platform) (*Image, error) {
	b, err := openArchive(ctx, file, limit)
	if err != nil {
		return nil, err
	}
	raw, err := readFile(b, "manifest.json", maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this is no docker archive: it has no manifest.json")
	}
	if err != nil {
		return nil, err
	}
	saved, err := parseSaved(raw)
	if err != nil {
		return nil, fmt.Errorf("reading manifest.json: %w", err)
	}
	entry, err := findSaved(saved, ref)
	if err != nil {
		return nil, err
	}
	config, d, err := unnamedConfig(ctx, b, entry.Config)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if len(config.RootFS.DiffIDs) != len(entry.Layers) {
		return nil, layersDiffer(len(entry.Layers), config)
	}
	if len(entry.Layers) == 0 {
		return nil, errors.New("the image has no layers")
	}
	img, err := newDockerImage(b, entry, config, d)
	if err != nil {
		return nil, err
	}
	return img, checkPlatform(config, want)
}

// parseSaved reads manifest.json.
func parseSaved(raw []byte) (saved savedImages, err error) {
	err = decodeJSON(bytes.NewReader(raw), &saved)
	return saved, err
}

// unnamedConfig reads a configuration as it arrives, and computes its digest.
func unnamedConfig(ctx context.Context, b *tarBlobs, name string) (*imageConfig, v1.Descriptor, error) {
	var d v1.Descriptor
	size := b.sizeOf(name)
	if size > maxConfig {
		return nil, d, fmt.Errorf("%s has more than %d bytes", printable(name, 200), maxConfig)
	}
	rc, err := b.open(name)
	if err != nil {
		return nil, d, err
	}
	defer rc.Close()
	sum := sha256.New()
	config, err := readConfig(io.TeeReader(&contextReader{ctx: ctx, inner: rc}, sum))
	if err != nil {
		return nil, d, err
	}
	d = v1.Descriptor{MediaType: types.DockerConfigJSON, Size: size, Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}}
	return config, d, nil
}

func findSaved(saved []savedImage, ref string) (savedImage, error) {
	if ref == "" {
		if len(saved) != 1 {
			return savedImage{}, fmt.Errorf("the archive has %d images, add the name of one to its path: %s", len(saved), savedNames(saved))
		}
		return saved[0], nil
	}
	want, err := name.NewTag(ref)
	if err != nil {
		return savedImage{}, err
	}
	for _, s := range saved {
		for _, t := range s.RepoTags {
			if got, err := name.NewTag(t); err == nil && got.Name() == want.Name() {
				return s, nil
			}
		}
	}
	return savedImage{}, fmt.Errorf("the archive has no image %q; it has %s", ref, savedNames(saved))
}

func savedNames(saved []savedImage) string {
	var names []string
	for _, s := range saved {
		names = append(names, s.RepoTags...)
	}
	if len(names) == 0 {
		return "none with a name"
	}
	return printableNames(names)
}

// newDockerImage makes the manifest that the archive lacks. Its digest names the image in
// the store, so its content must stay the same across versions.
func newDockerImage(b *tarBlobs, entry savedImage, config *imageConfig, of v1.Descriptor) (*Image, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.DockerManifestSchema2, Config: of}
	var layers []*Layer
	for n, d := range config.RootFS.DiffIDs {
		diffID := d.hash
		l := &Layer{Digest: diffID, DiffID: diffID, Size: b.sizeOf(entry.Layers[n]), blobs: b, file: entry.Layers[n], undigested: true}
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.DockerUncompressedLayer, Digest: diffID, Size: l.Size})
		layers = append(layers, l)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	i := config.describe(raw)
	i.Layers = layers
	return i, nil
}
