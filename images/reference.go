package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Kind says where an image comes from.
type Kind int

// Where an image can come from, in the form of its reference.
const (
	Registry      Kind = iota // python:3.14-slim, registry.example/team/python@sha256:…
	Layout                    // oci:DIR[:TAG]
	OCIArchive                // oci-archive:FILE[:TAG]
	DockerArchive             // docker-archive:FILE[:REF]
	Host                      // host
)

// maxReference bounds a reference; the longest legal name, tag and digest
// together have fewer than 500 bytes, and a path may have 4096.
const maxReference = 5000

// Reference is a parsed reference to an image.
type Reference struct {
	Kind Kind
	// Name is the normalized reference: two references with one Name mean the
	// same image. Short names of Docker Hub are written out and paths absolute.
	Name string
	Path string // of a layout or an archive
	Tag  string // which image of the layout or archive, if it was named

	remote name.Reference // of Registry
}

// WithDigest names the image with a digest in the repository of a reference to a
// registry.
func (r Reference) WithDigest(digest string) string {
	return r.remote.Context().Digest(digest).Name()
}

// Local reports whether the image comes from a file or a directory, whose
// content may change under the same name without a pull.
func (r Reference) Local() bool {
	return r.Kind == Layout || r.Kind == OCIArchive || r.Kind == DockerArchive
}

// Pinned reports whether the reference names its image by digest, so that it
// means the same one for ever.
func (r Reference) Pinned() bool {
	_, ok := r.remote.(name.Digest)
	return ok
}

// Parse reads a reference. A path ends at its first colon, as it does for
// skopeo and podman.
func Parse(ref string) (Reference, error) {
	if ref == "" {
		return Reference{}, errors.New("the image reference is empty")
	}
	if len(ref) > maxReference {
		return Reference{}, fmt.Errorf("the image reference has %d bytes, more than the limit of %d", len(ref), maxReference)
	}
	if strings.ContainsRune(ref, 0) {
		return Reference{}, fmt.Errorf("image reference %q has a NUL byte", ref)
	}
	if ref == "host" {
		return Reference{Kind: Host, Name: "host"}, nil
	}
	for prefix, kind := range map[string]Kind{
		"oci:": Layout, "oci-archive:": OCIArchive, "docker-archive:": DockerArchive,
	} {
		if rest, ok := strings.CutPrefix(ref, prefix); ok {
			return parseLocal(kind, prefix, rest)
		}
	}
	if err := checkElsewhere(ref); err != nil {
		return Reference{}, fmt.Errorf("image reference %q: %w", ref, err)
	}
	r, err := name.ParseReference(strings.TrimPrefix(ref, "docker://"))
	if err != nil {
		return Reference{}, fmt.Errorf("image reference %q: %w", ref, err)
	}
	return Reference{Kind: Registry, Name: r.Name(), remote: r}, nil
}

// checkElsewhere says what to do with a reference to a place that other tools know and
// this package does not, and with a path.
func checkElsewhere(ref string) error {
	for prefix, cure := range map[string]string{
		"docker-daemon:":      "save it with `docker save -o FILE IMAGE`, and use docker-archive:FILE",
		"containers-storage:": "save it with `podman save --format oci-archive -o FILE IMAGE`, and use oci-archive:FILE",
		"dir:":                "copy it with `skopeo copy dir:DIR oci:OTHER`, and use oci:OTHER",
	} {
		if strings.HasPrefix(ref, prefix) {
			return errors.New("toolcell does not read images there: " + cure)
		}
	}
	archive := strings.HasSuffix(ref, ".tar") || strings.HasSuffix(ref, ".tar.gz") || strings.HasSuffix(ref, ".tgz")
	isPath := strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") || strings.HasPrefix(ref, "~")
	if archive && !isPath { // a repository may have such a name
		_, err := os.Stat(ref)
		isPath = err == nil
	}
	switch {
	case !isPath:
		return nil
	case archive:
		return fmt.Errorf("for an archive use docker-archive:%s or oci-archive:%s, as it was made", ref, ref)
	}
	return fmt.Errorf("for a folder with an OCI layout use oci:%s", ref)
}

func parseLocal(kind Kind, prefix, rest string) (Reference, error) {
	path, tag, _ := strings.Cut(rest, ":")
	if path == "" {
		return Reference{}, fmt.Errorf("image reference %q names no path", prefix+rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Reference{}, err
	}
	r := Reference{Kind: kind, Path: path, Tag: tag, Name: prefix + path}
	if tag != "" {
		r.Name += ":" + tag
	}
	return r, nil
}
