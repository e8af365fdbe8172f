package images

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	maxManifest = 8 << 20 // bytes; registries refuse more than 4 MiB
	maxNesting  = 3       // indexes in indexes
)

// blobs are the files of a layout, in a directory or in a tar archive, or the
// blobs of a registry under the names they would have there.
type blobs interface {
	open(name string) (io.ReadCloser, error)
}

// dirBlobs is a layout in a directory.
type dirBlobs string

func (d dirBlobs) open(name string) (io.ReadCloser, error) {
	// A symlink in a layout that another user made may point at any file of this
	// one; a Root follows none that leads out.
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Without O_NONBLOCK a FIFO would hold us here for ever.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, requireRegular(f)
}

// requireRegular closes a file that is not a regular one, and returns an error.
func requireRegular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", f.Name())
	}
	if err != nil {
		f.Close()
	}
	return err
}

// readFile reads a whole file of at most limit bytes.
func readFile(b blobs, name string, limit int64) ([]byte, error) {
	rc, err := b.open(name)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	content, err := io.ReadAll(io.LimitReader(rc, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%q has more than %d bytes", name, limit)
	}
	return content, nil
}

// readBlob reads a whole blob of at most limit bytes and checks its digest.
func readBlob(b blobs, h v1.Hash, limit int64) ([]byte, error) {
	content, err := readFile(b, blobName(h), limit)
	if err != nil {
		return nil, err
	}
	return content, verifyBytes(content, h)
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// A pick says which image of a layout is meant. Both may be empty.
type pick struct{ tag, digest string }

// fromLayout returns the image of a layout that is meant, or the only one.
func fromLayout(b blobs, which pick, want v1.Platform) (v1.Image, error) {
	raw, err := readFile(b, "index.json", maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this is no OCI image layout: it has no index.json")
	}
	if err != nil {
		return nil, err
	}
	d := v1.Descriptor{MediaType: types.OCIImageIndex}
	if which.digest != "" {
		if d, raw, err = readManifest(b, which.digest); err != nil {
			return nil, err
		}
	}
	for range maxNesting + 1 { // the last one may be the image
		switch {
		case d.MediaType.IsImage():
			return partial.CompressedToImage(&blobImage{blobs: b, desc: d, manifest: raw})
		case !d.MediaType.IsIndex():
			return nil, fmt.Errorf("%s is a %q, not an image", d.Digest, d.MediaType)
		}
		var index v1.IndexManifest
		if err := json.Unmarshal(raw, &index); err != nil {
			return nil, fmt.Errorf("reading index: %w", plainJSON(err))
		}
		entries, err := withTag(index.Manifests, which.tag)
		if err != nil {
			return nil, err
		}
		if d, err = chooseManifest(entries, want); err != nil {
			return nil, err
		}
		if raw, err = readBlob(b, d.Digest, maxManifest); err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", d.Digest, err)
		}
		which.tag = "" // the entries of an inner index differ by platform only
	}
	return nil, errors.New("the image's indexes are nested too deep")
}

// readManifest reads what has a digest: a manifest, or an index of manifests.
func readManifest(b blobs, digest string) (d v1.Descriptor, raw []byte, err error) {
	if d.Digest, err = v1.NewHash(digest); err != nil {
		return d, nil, err
	}
	raw, err = readBlob(b, d.Digest, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil, fmt.Errorf("the layout has no image with the digest %s", digest)
	}
	if err != nil {
		return d, nil, fmt.Errorf("reading manifest %s: %w", digest, err)
	}
	var m struct {
		MediaType types.MediaType `json:"mediaType"`
		Manifests json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return d, nil, fmt.Errorf("%s is no manifest: %w", digest, err)
	}
	// The media type may be left out (OCI image-spec, manifest.md).
	otherwise := types.OCIManifestSchema1
	if m.Manifests != nil {
		otherwise = types.OCIImageIndex
	}
	d.MediaType, d.Size = cmp.Or(m.MediaType, otherwise), int64(len(raw))
	return d, raw, nil
}

const refName = "org.opencontainers.image.ref.name"

// withTag returns the entries of an index that carry the tag. Without a tag all
// are meant, but they must not be different images.
func withTag(entries []v1.Descriptor, tag string) ([]v1.Descriptor, error) {
	var found []v1.Descriptor
	var names []string
	for _, d := range entries {
		// Tools write the bare tag or the whole reference.
		name := d.Annotations[refName]
		if tag == "" || name == tag || strings.HasSuffix(name, ":"+tag) {
			found = append(found, d)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(entries) == 0:
		return nil, errors.New("the layout has no images")
	case tag == "" && len(names) > 1:
		return nil, fmt.Errorf("the layout has several images, add the tag of one to its path: %s", foreignNames(names))
	case len(found) == 0:
		return nil, fmt.Errorf("the layout has no image with the tag %q; it has %s", tag, foreignNames(names))
	}
	return found, nil
}

// blobImage is an image whose manifest is at hand and whose blobs are in a
// layout or in a registry.
type blobImage struct {
	blobs    blobs
	desc     v1.Descriptor
	manifest []byte

	mu     sync.Mutex
	config []byte // once it was read; it is asked for again and again
}

func (i *blobImage) MediaType() (types.MediaType, error) { return i.desc.MediaType, nil }
func (i *blobImage) RawManifest() ([]byte, error)        { return i.manifest, nil }

func (i *blobImage) RawConfigFile() ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.config != nil {
		return i.config, nil
	}
	m, err := v1.ParseManifest(bytes.NewReader(i.manifest))
	if err != nil {
		return nil, err
	}
	i.config, err = readBlob(i.blobs, m.Config.Digest, maxConfig)
	return i.config, err
}

func (i *blobImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	m, err := v1.ParseManifest(bytes.NewReader(i.manifest))
	if err != nil {
		return nil, err
	}
	for _, d := range m.Layers {
		if d.Digest == h {
			return &blobLayer{image: i, desc: d}, nil
		}
	}
	return nil, fmt.Errorf("no layer %s in the image", h)
}

// blobLayer is a layer of it.
type blobLayer struct {
	image *blobImage
	desc  v1.Descriptor
}

func (l *blobLayer) Digest() (v1.Hash, error)            { return l.desc.Digest, nil }
func (l *blobLayer) Size() (int64, error)                { return l.desc.Size, nil }
func (l *blobLayer) MediaType() (types.MediaType, error) { return l.desc.MediaType, nil }
func (l *blobLayer) Compressed() (io.ReadCloser, error) {
	return l.image.blobs.open(blobName(l.desc.Digest))
}
func (l *blobLayer) Descriptor() (*v1.Descriptor, error) { return &l.desc, nil }
func (l *blobLayer) Manifest() (*v1.Manifest, error)     { return partial.Manifest(l.image) }
func (l *blobLayer) ConfigFile() (*v1.ConfigFile, error) { return partial.ConfigFile(l.image) }
func (l *blobLayer) RawManifest() ([]byte, error)        { return l.image.RawManifest() }
func (l *blobLayer) RawConfigFile() ([]byte, error)      { return l.image.RawConfigFile() }

// DiffID is what the configuration says. Without it the default would compute
// it from the very bytes it is to check.
func (l *blobLayer) DiffID() (v1.Hash, error) { return partial.BlobToDiffID(l, l.desc.Digest) }
