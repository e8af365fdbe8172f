package images

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/sys/unix"
)

// Kind says where an image comes from.
type Kind int

// The sources of images, by the form of the reference.
const (
	Registry      Kind = iota // python:3.14-slim, registry.example/team/python@sha256:…
	Layout                    // oci:DIR[:TAG|@DIGEST]
	OCIArchive                // oci-archive:FILE[:TAG|@DIGEST]
	DockerArchive             // docker-archive:FILE[:REF]
	Host                      // host
)

// maxReference bounds a reference; the longest legal name, tag and digest
// together have fewer than 500 bytes, and a path may have 4096.
const maxReference = 5000

// Reference is a parsed reference to an image.
type Reference struct {
	Kind Kind
	// Name is the normalized reference: references with the same Name mean the same image.
	// Short names of Docker Hub are completed, and paths are absolute.
	Name string
	Path string // of a layout or an archive
	// The image of the layout or archive, if the reference names one; not both.
	Tag, Digest string

	remote name.Reference // of Registry
}

// WithDigest names the image with a digest in the repository of a reference to a
// registry.
func (r Reference) WithDigest(digest string) string {
	return r.remote.Context().Digest(digest).Name()
}

// RegistryName returns the registry as users write it, "" for an image from elsewhere.
func (r Reference) RegistryName() string {
	if r.remote == nil {
		return ""
	}
	return shownName(r.remote.Context().RegistryStr())
}

func shownName(registry string) string {
	if registry == name.DefaultRegistry {
		return "docker.io"
	}
	return registry
}

// Local reports whether the image comes from a file or a directory, whose
// content may change under the same name without a pull.
func (r Reference) Local() bool {
	return r.Kind == Layout || r.Kind == OCIArchive || r.Kind == DockerArchive
}

// Pinned reports whether the reference has a digest, so that it always means the same
// image.
func (r Reference) Pinned() bool {
	_, ok := r.remote.(name.Digest)
	return ok
}

// Stamp returns a text that changes whenever an archive changes, or "" if changes cannot be
// detected: for a folder, a file that has just changed, or a registry.
func (r Reference) Stamp() string {
	if r.Kind != OCIArchive && r.Kind != DockerArchive {
		return ""
	}
	stamp, err := state.StampOf(r.Path)
	if err != nil || stamp.Mode&unix.S_IFMT != unix.S_IFREG || !stamp.Settled() {
		return ""
	}
	return fmt.Sprint(stamp)
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
		return Reference{}, fmt.Errorf("image reference %s has a NUL byte", quoted(ref))
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
	inRegistry := strings.TrimPrefix(ref, "docker://")
	err := cmp.Or(checkElsewhere(ref), checkPath(inRegistry))
	var r name.Reference
	if err == nil {
		if r, err = name.ParseReference(inRegistry); err != nil {
			err = checkForm(inRegistry)
		}
	}
	if err != nil { // it has the reference in it, as it was typed
		return Reference{}, fmt.Errorf("image reference %s: %s", quoted(ref), printable(err.Error(), 500))
	}
	return Reference{Kind: Registry, Name: r.Name(), remote: r}, nil
}

// checkElsewhere explains what to do with a reference to a source that only other tools
// support.
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
	return nil
}

// checkForm explains what is wrong with a reference to a registry.
func checkForm(ref string) error {
	if lower := strings.ToLower(ref); lower != ref {
		if _, err := name.ParseReference(lower); err == nil {
			return fmt.Errorf("names of images are in lower case: %s", lower)
		}
	}
	return errors.New("it is not NAME[:TAG] or NAME@sha256:DIGEST, such as python:3.14-slim")
}

// checkPath explains what to write instead of a path.
func checkPath(ref string) error {
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
	digest := ""
	if at := digestAtEnd().FindString(rest); at != "" && kind != DockerArchive {
		rest, digest = strings.TrimSuffix(rest, at), at[1:]
	}
	if strings.Contains(rest, "@sha256:") && kind != DockerArchive {
		return Reference{}, fmt.Errorf("image reference %s has no whole digest at its end: sha256: and 64 digits of 0-9 and a-f", quoted(prefix+rest))
	}
	path, tag, _ := strings.Cut(rest, ":")
	if tag != "" && digest != "" {
		return Reference{}, fmt.Errorf("image reference %s has a tag and a digest; leave out the tag", quoted(prefix+rest+"@"+digest))
	}
	if path == "" {
		return Reference{}, fmt.Errorf("image reference %s names no path", quoted(prefix+rest))
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Reference{}, err
	}
	r := Reference{Kind: kind, Path: path, Tag: tag, Digest: digest, Name: prefix + path}
	if tag != "" {
		r.Name += ":" + tag
	}
	if digest != "" {
		r.Name += "@" + digest
	}
	return r, nil
}

// digestAtEnd matches the algorithms that the OCI image-spec registers and the library
// supports.
var digestAtEnd = text.Pattern(`@(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
