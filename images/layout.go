package images

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	maxManifest = 8 << 20 // bytes; registries refuse more than 4 MiB
	maxNesting  = 3       // indexes in indexes
)

// blobs are the files of a layout in a directory or tar archive, or the blobs of a registry
// under the names that they would have in a layout.
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
	// Without O_NONBLOCK, opening a FIFO would block forever.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, requireRegular(f)
}

// openRegular opens a file outside of a layout.
func openRegular(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, requireRegular(f)
}

// requireRegular returns an error, and closes the file, if it is not a regular file.
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

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// A pick selects an image of a layout. Both fields may be empty.
type pick struct{ tag, digest string }

// fromLayout returns the selected image of a layout, or the only one.
func fromLayout(b blobs, which pick, want v1.Platform) (*found, error) {
	kind := types.OCIImageIndex
	doc, err := readIndex(b)
	if which.digest != "" {
		kind, doc, err = findDocument(b, which.digest)
	}
	if err != nil {
		return nil, err
	}
	name := which.digest
	for range maxNesting + 1 { // the last one may be the image
		switch {
		case kind.IsImage():
			return &found{doc, b}, nil
		case !kind.IsIndex():
			return nil, fmt.Errorf("%s is a %q, not an image", name, printable(string(kind), 200))
		}
		entries, err := withTag(doc.Manifests, which.tag)
		if err != nil {
			return nil, err
		}
		chosen, err := chooseManifest(entries, want)
		if err != nil {
			return nil, err
		}
		name, kind = chosen.Digest.hash.String(), chosen.MediaType
		if doc, err = readDocument(b, chosen.Digest.hash); err != nil {
			return nil, err
		}
		which.tag = "" // the entries of an inner index differ by platform only
	}
	return nil, errors.New("the image's indexes are nested too deep")
}

func readIndex(b blobs) (*document, error) {
	raw, err := readFile(b, "index.json", maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this is no OCI image layout: it has no index.json")
	}
	if err != nil {
		return nil, err
	}
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, fmt.Errorf("reading index: %w", err)
	}
	return doc, nil
}

func readDocument(b blobs, h v1.Hash) (*document, error) {
	raw, err := readFile(b, blobName(h), maxManifest)
	if err == nil {
		err = verifyBytes(raw, h)
	}
	var doc *document
	if err == nil {
		doc, err = parseDocument(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", h, err)
	}
	return doc, nil
}

// findDocument reads the manifest or index with a digest that the user gave.
func findDocument(b blobs, digest string) (types.MediaType, *document, error) {
	h, err := v1.NewHash(digest)
	if err != nil {
		return "", nil, err
	}
	doc, err := readDocument(b, h)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("the layout has no image with the digest %s", digest)
	}
	if err != nil {
		return "", nil, err
	}
	return doc.kind(), doc, nil
}

// kind returns the media type of a document. If it is missing (OCI image-spec, manifest.md),
// the content decides.
func (d *document) kind() types.MediaType {
	otherwise := types.OCIManifestSchema1
	if d.Manifests != nil {
		otherwise = types.OCIImageIndex
	}
	return cmp.Or(d.MediaType, otherwise)
}

// withTag returns the entries of an index with the tag. Without a tag it returns all, but
// they must not be different images.
func withTag(entries []descriptor, tag string) ([]descriptor, error) {
	var found []descriptor
	var names []string
	for _, d := range entries {
		// Tools write the bare tag or the whole reference.
		name := d.Annotations.Tag
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
		return nil, fmt.Errorf("the layout has several images, add the tag of one to its path: %s", printableNames(names))
	case len(found) == 0:
		return nil, fmt.Errorf("the layout has no image with the tag %q; it has %s", tag, printableNames(names))
	}
	return found, nil
}
