package images

import (
	"bytes"
	"errors"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What lists of an image may have at most. Real indexes have some 30 entries.
const (
	maxLayers    = 1000 // Docker stops at 127
	maxManifests = 1000
	maxVariables = 1000
)

// A document is a manifest or an index, as far as it is in use (OCI image-spec,
// manifest.md and image-index.md).
type document struct {
	raw       []byte
	mediaType types.MediaType // what it says that it is; often nothing
	artifact  string
	config    v1.Descriptor
	layers    []v1.Descriptor
	manifests []v1.Descriptor
	isIndex   bool // it has a list of manifests
}

func parseDocument(raw []byte) (*document, error) {
	d := &document{raw: raw}
	r := newJSONReader(bytes.NewReader(raw))
	err := r.object(func(name string) (err error) {
		switch name {
		case "mediaType":
			d.mediaType, err = r.mediaType()
		case "artifactType":
			d.artifact, err = r.text()
		case "config":
			d.config, err = r.descriptor()
		case "layers":
			d.layers, err = r.descriptors(maxLayers)
		case "manifests":
			d.isIndex = true
			d.manifests, err = r.descriptors(maxManifests)
		default:
			err = r.skip()
		}
		return err
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, plainJSON(err)
	}
	if slices.ContainsFunc(slices.Concat(d.manifests, d.layers), func(d v1.Descriptor) bool { return d.Digest.Hex == "" }) {
		return nil, errors.New("an entry has no digest")
	}
	return d, nil
}

func (r *jsonReader) mediaType() (types.MediaType, error) {
	s, err := r.text()
	return types.MediaType(s), err
}

func (r *jsonReader) descriptors(most int) (all []v1.Descriptor, err error) {
	err = r.list(most, func() error {
		d, err := r.descriptor()
		all = append(all, d)
		return err
	})
	return all, err
}

// descriptor reads an entry of a manifest or an index (OCI image-spec, descriptor.md).
// Of its annotations only the tag is kept.
func (r *jsonReader) descriptor() (d v1.Descriptor, err error) {
	err = r.object(func(name string) (err error) {
		switch name {
		case "mediaType":
			d.MediaType, err = r.mediaType()
		case "digest":
			d.Digest, err = r.digest()
		case "size":
			d.Size, err = r.integer()
		case "platform":
			d.Platform, err = r.platform()
		case "annotations":
			err = r.object(func(name string) error {
				if name != refName {
					return r.skip()
				}
				tag, err := r.text()
				d.Annotations = map[string]string{refName: tag}
				return err
			})
		default:
			err = r.skip()
		}
		return err
	})
	return d, err
}

func (r *jsonReader) platform() (p *v1.Platform, err error) {
	if r.tokens.PeekKind() == 'n' {
		return nil, r.skip()
	}
	p = &v1.Platform{}
	err = r.object(func(name string) (err error) {
		switch name {
		case "os":
			p.OS, err = r.text()
		case "architecture":
			p.Architecture, err = r.text()
		case "variant":
			p.Variant, err = r.text()
		case "os.version":
			p.OSVersion, err = r.text()
		default:
			err = r.skip()
		}
		return err
	})
	return p, err
}

// readConfig reads a configuration to its end, as far as it is in use (OCI image-spec,
// config.md). It holds no more of it than that.
func readConfig(in io.Reader) (*v1.ConfigFile, error) {
	c := &v1.ConfigFile{}
	r := newJSONReader(in)
	err := r.object(func(name string) (err error) {
		switch name {
		case "os":
			c.OS, err = r.text()
		case "architecture":
			c.Architecture, err = r.text()
		case "variant":
			c.Variant, err = r.text()
		case "os.version":
			c.OSVersion, err = r.text()
		case "config":
			err = r.object(func(name string) (err error) {
				if name != "Env" {
					return r.skip()
				}
				c.Config.Env, err = r.texts(maxVariables)
				return err
			})
		case "rootfs":
			err = r.object(func(name string) (err error) {
				if name != "diff_ids" {
					return r.skip()
				}
				c.RootFS.DiffIDs, err = r.digests(maxLayers)
				return err
			})
		default: // history and all else
			err = r.skip()
		}
		return err
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, plainJSON(err)
	}
	return c, nil
}

func (r *jsonReader) digests(most int) (all []v1.Hash, err error) {
	err = r.list(most, func() error {
		h, err := r.digest()
		all = append(all, h)
		return err
	})
	return all, err
}
