package images

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxEntries bounds the lists of an image: layers, of which Docker stops at 127,
// manifests, of which real indexes have some 30, and variables.
const maxEntries = 1000

// A document is a manifest or an index, with the members that are used (OCI image-spec,
// manifest.md and image-index.md).
type document struct {
	raw          []byte
	MediaType    types.MediaType  `json:"mediaType"` // often missing
	ArtifactType string           `json:"artifactType"`
	Config       descriptor       `json:"config"`
	Layers       list[descriptor] `json:"layers"`
	Manifests    list[descriptor] `json:"manifests"` // of an index; nil in a manifest
}

func parseDocument(raw []byte) (*document, error) {
	d := &document{raw: raw}
	if err := decodeJSON(bytes.NewReader(raw), d); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(slices.Concat(d.Manifests, d.Layers), func(d descriptor) bool { return d.Digest.hash.Hex == "" }) {
		return nil, errors.New("an entry has no digest")
	}
	return d, nil
}

// A descriptor is an entry of a manifest or an index (OCI image-spec, descriptor.md). Only
// the tag is kept of its annotations.
type descriptor struct {
	MediaType   types.MediaType `json:"mediaType"`
	Digest      digest          `json:"digest"`
	Size        int64           `json:"size"`
	Platform    *platform       `json:"platform"`
	Annotations struct {
		Tag string `json:"org.opencontainers.image.ref.name"`
	} `json:"annotations"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
	OSVersion    string `json:"os.version"`
}

func (p platform) String() string {
	return v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, OSVersion: p.OSVersion}.String()
}

// An imageConfig is a configuration, with the members that are used (OCI image-spec, config.md).
type imageConfig struct {
	platform
	Config struct {
		Env list[string]
	} `json:"config"`
	RootFS struct {
		DiffIDs list[digest] `json:"diff_ids"`
	} `json:"rootfs"`
}

// readConfig reads a configuration to its end.
func readConfig(in io.Reader) (*imageConfig, error) {
	c := &imageConfig{}
	if err := decodeJSON(in, c); err != nil {
		return nil, err
	}
	return c, nil
}

// decodeJSON reads the members of a JSON text that v has fields for, and skips the rest
// without keeping it. Images are hostile: decoded whole, 16 MiB of "[{},{},…]" took
// gigabytes.
func decodeJSON(in io.Reader, v any) error {
	// To detect duplicate names, all would have to be kept. The last one counts, as in
	// encoding/json, which other tools use for the same files.
	d := jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.UnmarshalDecode(d, v); err != nil {
		return explainJSON(err)
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return errNotJSON
	case errors.Is(err, io.EOF):
		return nil
	default:
		return explainJSON(err)
	}
}

// A list has at most maxEntries.
type list[T any] []T

// UnmarshalJSONFrom refuses more.
func (l *list[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return readList(d, (*[]T)(l), maxEntries, nil)
}

// readList reads a list of at most limit entries. check may be nil.
func readList[T any](d *jsontext.Decoder, to *[]T, limit int, check func(entry T) error) error {
	if d.PeekKind() != '[' { // null, or an error
		return json.UnmarshalDecode(d, to)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	all := []T{}
	for d.PeekKind() != ']' {
		if len(all) == limit {
			return limitError(limit)
		}
		var entry T
		if err := json.UnmarshalDecode(d, &entry); err != nil {
			return err
		}
		if check != nil {
			if err := check(entry); err != nil {
				return err
			}
		}
		all = append(all, entry)
	}
	*to = all
	_, err := d.ReadToken()
	return err
}

// A limitError says that a list is too long.
type limitError int

func (limit limitError) Error() string {
	return fmt.Sprintf("has more than the limit of %d entries", int(limit))
}

// A digest may be missing.
type digest struct{ hash v1.Hash }

// UnmarshalText reads an empty text as a missing digest.
func (d *digest) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		return nil
	}
	if d.hash, err = v1.NewHash(string(text)); err != nil {
		return errNotDigest
	}
	return nil
}
