package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// savedImage is one entry of the manifest.json that `docker save` writes.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// fromDockerArchive returns an image of a `docker save` archive: the one with
// the reference, or the only one.
//
// Such an archive has no manifest with digests of layers, but its configuration
// names their uncompressed digests. The image is presented as one of plain tar
// layers with these digests, so that reading it needs no pass over its layers.
func fromDockerArchive(file, ref string, most int64) (v1.Image, error) {
	b, err := openArchive(file, most)
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
	var saved []savedImage
	if err := json.Unmarshal(raw, &saved); err != nil {
		return nil, fmt.Errorf("reading manifest.json: %w", plainJSON(err))
	}
	entry, err := findSaved(saved, ref)
	if err != nil {
		return nil, err
	}
	config, err := readFile(b, entry.Config, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	img := &dockerImage{blobs: b, entry: entry, config: config}
	if err := img.buildManifest(); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(img)
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
	return foreignNames(names)
}

// dockerImage is an image of a `docker save` archive.
type dockerImage struct {
	blobs    *tarBlobs
	entry    savedImage
	config   []byte
	manifest []byte
	layers   map[v1.Hash]v1.Descriptor
	files    map[v1.Hash]string
}

// buildManifest makes the manifest that the archive lacks.
func (i *dockerImage) buildManifest() error {
	config, err := partial.ConfigFile(i)
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	if len(config.RootFS.DiffIDs) != len(i.entry.Layers) {
		return fmt.Errorf("the image has %d layers but its configuration names %d",
			len(i.entry.Layers), len(config.RootFS.DiffIDs))
	}
	digest, err := partial.ConfigName(i)
	if err != nil {
		return err
	}
	m := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.DockerManifestSchema2,
		Config:        v1.Descriptor{MediaType: types.DockerConfigJSON, Size: int64(len(i.config)), Digest: digest},
	}
	i.layers = map[v1.Hash]v1.Descriptor{}
	i.files = map[v1.Hash]string{}
	for n, diffID := range config.RootFS.DiffIDs {
		file := i.entry.Layers[n]
		d := v1.Descriptor{MediaType: types.DockerUncompressedLayer, Digest: diffID, Size: i.blobs.sizeOf(file)}
		m.Layers = append(m.Layers, d)
		i.layers[diffID], i.files[diffID] = d, file
	}
	i.manifest, err = json.Marshal(m)
	return err
}

func (i *dockerImage) MediaType() (types.MediaType, error) { return types.DockerManifestSchema2, nil }
func (i *dockerImage) RawManifest() ([]byte, error)        { return i.manifest, nil }
func (i *dockerImage) RawConfigFile() ([]byte, error)      { return i.config, nil }

func (i *dockerImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	d, ok := i.layers[h]
	if !ok {
		return nil, errors.New("no layer " + h.String() + " in the image")
	}
	return &dockerLayer{image: i, desc: d}, nil
}

// dockerLayer is a layer of a `docker save` archive.
type dockerLayer struct {
	image *dockerImage
	desc  v1.Descriptor
}

func (l *dockerLayer) Digest() (v1.Hash, error)            { return l.desc.Digest, nil }
func (l *dockerLayer) DiffID() (v1.Hash, error)            { return l.desc.Digest, nil }
func (l *dockerLayer) MediaType() (types.MediaType, error) { return l.desc.MediaType, nil }

// Size is unknown: the descriptor has the size in the archive, and some tools
// compress the layers there.
func (l *dockerLayer) Size() (int64, error) { return -1, nil }

// Compressed returns the plain tar, whose digest is the one that is known.
func (l *dockerLayer) Compressed() (io.ReadCloser, error) {
	file, err := partial.CompressedToLayer(fileLayer{l})
	if err != nil {
		return nil, err
	}
	return file.Uncompressed()
}

// fileLayer is the layer as it lies in the archive.
type fileLayer struct{ *dockerLayer }

func (l fileLayer) Compressed() (io.ReadCloser, error) {
	return l.image.blobs.open(l.image.files[l.desc.Digest])
}
